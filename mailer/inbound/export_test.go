package inbound

// AmazonHost is amazonHost.
var AmazonHost = amazonHost

// MaxMarks is maxMarks.
const MaxMarks = maxMarks

// Prune is prune.
var Prune = (*Desk).prune

// AddMark counts a mark of a block.
func (d *Desk) AddMark(block string, n int) {
	for range n {
		d.marks.add(block)
	}
}
