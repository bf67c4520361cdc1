"""The front ends, thin: Streamlit pages, the participant page and the command line."""
