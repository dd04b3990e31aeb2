package now

import (
	"fmt"
	"time"

	"fingerpost/api/client"
	"fingerpost/resolver/catalog"
)

// A trouble is what may be wrong with an edge.
type trouble int

const (
	missing trouble = iota
	unready
	late
	reports
)

// manyEdges says how many edges have the same trouble.
var manyEdges = map[trouble]string{missing: "%s are missing.", unready: "%s are not ready.",
	late: "%s answer from what was true before.", reports: "%s report a problem."}

func (l *list) edges(f *Facts) {
	for t := missing; t <= reports; t++ {
		n := len(l.items)
		for i := range f.Edges {
			if is, text := troubleOf(&f.Edges[i]); is == t && text != "" {
				kind := Bad
				if t == reports {
					kind = Warn
				}
				l.add(kind, "The edge "+f.Edges[i].Name+" "+text, f.Edges[i].Problem, "/console/live", "See the edges")
			}
		}
		l.fold(n, 0, func(n int) string { return fmt.Sprintf(manyEdges[t], catalog.Count(n, "edge")) }, "/console/live",
			"See the edges")
	}
}

// troubleOf says what is wrong with an edge, and for how long where that is known; "" for nothing.
func troubleOf(e *client.Edge) (is trouble, text string) {
	behind := time.Duration(e.LagMS * float64(time.Millisecond))
	silent := time.Duration(e.BeatAgeMS * float64(time.Millisecond))
	switch {
	case e.Version == "":
		return missing, "is missing: it was not heard since this server started."
	case !e.Ready && silent >= lagging:
		return missing, "is missing: it was last heard " + catalog.Span(silent) + " ago."
	case !e.Ready:
		return unready, "is not ready."
	case !e.Current && behind >= lagging:
		return late, "answers from what was true " + catalog.Span(behind) + " ago."
	case e.Problem != "":
		return reports, "reports a problem."
	}
	return 0, ""
}
