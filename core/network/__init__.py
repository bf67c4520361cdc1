"""A network as the engine runs it: loaded, examined, fast, in chunks, with right gradients and known geometry."""
