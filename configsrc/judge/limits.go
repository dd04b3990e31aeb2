package judge

import (
	"fmt"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// A limit is the most objects of a kind that all files may have.
type limit struct {
	kind   catalog.Kind
	most   int
	of     func(Counts) int
	last   func(*catalog.Declared) string // the name of a file's last one
	remedy string
}

var limits = []limit{
	{catalog.KindWebhook, catalog.MaxWebhooks, func(n Counts) int { return n.Webhooks },
		func(d *catalog.Declared) string { return d.Webhooks[len(d.Webhooks)-1].Name },
		"one webhook may have many events and projects"},
	{catalog.KindLogin, catalog.MaxLogins, func(n Counts) int { return n.Logins },
		func(d *catalog.Declared) string { return d.Logins[len(d.Logins)-1].Name }, "one login may have many rules"},
	{catalog.KindInbound, catalog.MaxInbounds, func(n Counts) int { return n.Inbounds },
		func(d *catalog.Declared) string { return d.Inbounds[len(d.Inbounds)-1].Name },
		"one block may serve many projects"},
}

// tooMany rejects files that add objects of which there would be too many, in path order. It reports whether it rejected
// any.
func (j *Case) tooMany() (moved bool) {
	for i := range limits {
		moved = j.exceeds(&limits[i]) || moved
	}
	return moved
}

func (j *Case) exceeds(l *limit) (moved bool) {
	adds := func(c *Candidate) int {
		n := l.of(c.Counts)
		if c.Prev != nil {
			n -= l.of(c.Prev.Counts)
		}
		return n
	}
	n := l.of(j.Table.counts())
	for _, c := range j.Candidates {
		if !c.Out() && adds(c) < 0 {
			n += adds(c)
		}
	}
	for _, c := range j.Candidates {
		more := adds(c)
		switch {
		case c.Out() || more <= 0:
		case n+more <= l.most:
			n += more
		default:
			c.Rejected, moved = true, true
			c.Cross = append(c.Cross, Positions(j.Display(c.Path), c.Bytes).Diagnose(
				catalog.Ref{Kind: l.kind, Name: l.last(c.Declared)}, hclfile.Error,
				fmt.Sprintf("there would be %d %ss in all files, %d are allowed", n+more, l.kind, l.most), l.remedy))
		}
	}
	return moved
}
