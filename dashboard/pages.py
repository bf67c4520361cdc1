"""The researcher's pages."""

import streamlit as st

st.title("Foretell")
