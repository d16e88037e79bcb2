"""The page that somebody signs who answers for the data: facts of one run, and the page, the PDF and the text made of them."""
