// Package chart draws the last hour of a figure as SVG on the server.
//
// What it promises. The same values give the same bytes. A chart says everything without colour: lines differ in their
// dashes and are named with their last value, and Sentence says in words what is to be seen. Table has the same numbers.
// A value that is not there (NaN, infinite, negative) is a gap. Any values give well-formed SVG, without styles and
// scripts, for pages with a strict Content-Security-Policy: colours come from the classes of the page's stylesheet.
//
// What it needs. Values at even steps, the oldest first, up to a moment. Texts are escaped here.
//
// What it does not do. It knows no figure of fingerpost, and reads nothing.
package chart
