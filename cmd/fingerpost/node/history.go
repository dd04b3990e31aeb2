package node

import (
	"cmp"
	"slices"
	"time"

	"fingerpost/api/ops/history"
	"fingerpost/resolver"
)

// sample reads what the history keeps.
func (n *service) sample() history.Sample {
	f := n.api.ConsoleFigures()
	s := history.Sample{Resolves: f.Resolves, Hits: f.Hits, Misses: f.Misses, Durations: f.Durations,
		Subscribers: n.api.EventStreams().Len()}
	if !n.cluster.isEdge() { // its authority sends
		s.Mail = new(history.Mail)
		for _, sent := range n.mail.mailer.Counts().Sends {
			switch sent.Result {
			case "sent", "kept":
				s.Mail.Sent += sent.N
			case "failed", "expired":
				s.Mail.Failed += sent.N
			}
		}
	}
	if n.cluster == nil {
		return s
	}
	cluster := n.cluster.Figures()
	if cluster.Edge {
		age := seconds(cluster.LagSeconds)
		s.AuthorityAge = &age
	}
	for _, e := range cluster.Edges {
		s.Edges = append(s.Edges, history.Edge{Name: e.Name, Lag: seconds(e.LagSeconds), Ready: e.Ready})
	}
	return s
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// noteGeneration marks in the history what went live.
func (n *service) noteGeneration(g resolver.Generation) {
	noted := history.Generation{Number: g.Number, Time: time.Now(), Loaded: g.Loaded, Changed: g.Changed, Many: g.Many,
		Only: g.Only}
	for _, by := range g.By {
		noted.By = append(noted.By, cmp.Or(by.Actor, by.Key))
		if !slices.Contains(noted.Doors, string(by.Door)) {
			noted.Doors = append(noted.Doors, string(by.Door))
		}
	}
	n.history.Note(noted)
}
