package conditions

import (
	"time"

	"fingerpost/resolver/catalog"
)

// lagging is how old the answers of an edge may be. The alerts are more patient: they wake people.
const lagging = 10 * time.Second

const (
	seeEdge = "look at its machine, its log, and the network to the authority"
	seeNATS = "see that the NATS server runs and can be reached; the node goes on by itself"
)

// cluster are the conditions of edges and their authority.
var cluster = []Kind{
	{ID: "edge-missing", Severity: Warning, Broken: true, Check: "edges", Remedy: seeEdge,
		Alert: Alert{"EdgeMissing", "fingerpost_cluster_edge_ready == 0", "5m",
			"The edge {{ $labels.edge }} is not heard, or has no whole tree"},
		find: func(s *State) []Condition {
			return edges(s, "%s are missing.", func(e *Edge) string {
				switch {
				case e.Version == "":
					return "is missing: it was not heard since this server started."
				case !e.Ready && ms(e.BeatAgeMS) >= lagging:
					return "is missing: it was last heard " + catalog.Span(ms(e.BeatAgeMS)) + " ago."
				}
				return ""
			})
		}},
	{ID: "edge-unready", Severity: Warning, Broken: true, Check: "edges", Remedy: seeEdge,
		Guide: "/docs/alerts#fingerpostedgemissing", Except: "FingerpostEdgeMissing fires for it",
		find: func(s *State) []Condition {
			return edges(s, "%s are not ready.", func(e *Edge) string {
				if e.Version != "" && !e.Ready && ms(e.BeatAgeMS) < lagging {
					return "is not ready."
				}
				return ""
			})
		}},
	{ID: "edge-lags", Severity: Warning, Broken: true, Check: "edges", Remedy: seeEdge, Guide: lagGuide,
		Alert: Alert{"EdgeLags", "fingerpost_cluster_edge_lag_seconds > 60\n" +
			"unless on (job, instance, edge) fingerpost_cluster_edge_ready == 0", "2m",
			"The edge {{ $labels.edge }} answers as it was {{ $value | humanizeDuration }} ago"},
		find: func(s *State) []Condition {
			return edges(s, "%s answer from what was true before.", func(e *Edge) string {
				if e.late() {
					return "answers from what was true " + catalog.Span(ms(e.LagMS)) + " ago."
				}
				return ""
			})
		}},
	{ID: "edge-reports", Severity: Warning, Check: "edges", Remedy: seeEdge, Guide: lagGuide,
		Except: "the edge's own FingerpostClusterProblem fires for it",
		find: func(s *State) []Condition {
			return edges(s, "%s report a problem.", func(e *Edge) string {
				if e.Problem != "" && e.Version != "" && e.Ready && !e.late() {
					return "reports a problem."
				}
				return ""
			})
		}},
	{ID: "edge-cut-off", Severity: Warning, Broken: true, Check: "nats", Remedy: seeNATS, Guide: lagGuide,
		Alert: Alert{"EdgeCutOff", "fingerpost_cluster_lag_seconds > 60", "2m",
			"The edge at {{ $labels.instance }} has not heard its authority for {{ $value | humanizeDuration }}"},
		find: func(s *State) []Condition {
			return told(s.CutOff > 0, "This edge last heard its authority "+catalog.Span(s.CutOff)+
				" ago: it answers from what was true then, and refuses changes and mail.", s.Cluster)
		}},
	{ID: "cluster-problem", Severity: Warning, Broken: true, Check: "nats", Remedy: seeNATS,
		Alert: Alert{"ClusterProblem", "fingerpost_cluster_problem == 1 or fingerpost_cluster_connected == 0", "5m",
			"{{ $labels.instance }} is not up to date with its cluster"},
		find: func(s *State) []Condition { // an edge that is cut off says it there
			return told(s.Cluster != "" && s.CutOff == 0, "This node is not up to date with its cluster.", s.Cluster)
		}},
}

const lagGuide = "/docs/alerts#fingerpostedgelags-and-fingerpostedgecutoff"

func (e *Edge) late() bool { return e.Version != "" && e.Ready && !e.Current && ms(e.LagMS) >= lagging }

func ms(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

// edges are those of which is says something; "": nothing.
func edges(s *State, many string, is func(e *Edge) string) (list []Condition) {
	for i := range s.Edges {
		e := &s.Edges[i]
		if text := is(e); text != "" {
			list = append(list, Condition{Subject: "edge " + e.Name, Sentence: "The edge " + e.Name + " " + text,
				Detail: e.Problem, Many: many, Of: "edge"})
		}
	}
	return list
}
