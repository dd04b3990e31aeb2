// Package chart draws the last hour of a figure as SVG on the server.
//
// What it promises. The same values give the same bytes. A chart says everything without colour: lines differ in their
// dashes and are named with their last value, and Sentence says in words what is to be seen. Table has the same
// numbers. A value that is not there (NaN, infinite, negative) is a gap. Any values give well-formed SVG, without
// styles and scripts, for pages with a strict Content-Security-Policy: colours come from the classes of the page's
// stylesheet.
//
// What it needs. Values at even steps, the oldest first, up to a moment. Texts are escaped here. hour.go, which alone
// knows the figures of fingerpost, takes them from the history that package ops/history keeps.
//
// What it does not do. It reads nothing, lays out no page, and does not decide who may see a chart.
package chart
