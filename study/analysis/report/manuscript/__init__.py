"""What a manuscript needs of an analysis: method, results, references and tables, in Markdown, Word and LaTeX."""
