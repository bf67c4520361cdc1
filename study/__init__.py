"""People and responses: design, freeze, run, log, analyse. No Streamlit here."""
