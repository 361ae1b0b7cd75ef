"""The report as one HTML file that needs nothing else: no network, no scripts, no fonts.

- figures.py  numbers, sizes, spans of time and shares as people read them
- charts.py   bars, lines and heat maps as SVG
- tables.py   rows as HTML tables
- summary.py  what a person should read first
- page.py     the page itself
"""
