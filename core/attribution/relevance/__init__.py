"""Methods that distribute a logit backwards, call by call: LRP, DeepLIFT, Taylor decomposition, excitation."""
