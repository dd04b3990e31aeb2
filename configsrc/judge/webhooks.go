package judge

import (
	"fmt"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// tooManyWebhooks rejects files that add webhooks and with which there would be too many, in path order. It reports whether
// it rejected any.
func (j *Case) tooManyWebhooks() (moved bool) {
	adds := func(c *Candidate) int {
		n := c.Counts.Webhooks
		if c.Prev != nil {
			n -= c.Prev.Counts.Webhooks
		}
		return n
	}
	n := j.Table.webhooks()
	for _, c := range j.Candidates {
		if !c.Out() && adds(c) < 0 {
			n += adds(c)
		}
	}
	for _, c := range j.Candidates {
		more := adds(c)
		switch {
		case c.Out() || more <= 0:
		case n+more <= catalog.MaxWebhooks:
			n += more
		default:
			c.Rejected, moved = true, true
			last := c.Declared.Webhooks[len(c.Declared.Webhooks)-1].Name
			c.Cross = append(c.Cross, Positions(j.Display(c.Path), c.Bytes).Diagnose(
				catalog.Ref{Kind: catalog.KindWebhook, Name: last}, hclfile.Error,
				fmt.Sprintf("there would be %d webhooks in all files, %d are allowed", n+more, catalog.MaxWebhooks),
				"one webhook may have many events and projects"))
		}
	}
	return moved
}
