package ops

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
)

// gitHook answers POST /hooks/git: the next fetch begins at once.
func (o *Server) gitHook(w http.ResponseWriter, _ *http.Request) {
	if o.SyncGit == nil {
		http.Error(w, "this server does not pull (--git-pull)", http.StatusConflict)
		return
	}
	o.SyncGit()
	w.WriteHeader(http.StatusAccepted)
}

// gitMetrics are the metrics of the git repository.
func (o *Server) gitMetrics(gauge func(name, help string,
	value func() float64) prometheus.Collector) []prometheus.Collector {
	return []prometheus.Collector{
		counters{
			desc: prometheus.NewDesc("fingerpost_git_operations_total",
				"Commits and pushes that were made, pulls that brought commits, and failures of any of them.", []string{"kind"},
				nil),
			read: func(yield func(kind string, count uint64)) {
				st := o.Git()
				yield("commit", st.Commits)
				yield("push", st.Pushes)
				yield("pull", st.Pulls)
				yield("failure", st.Failures)
			},
		},
		gauge("fingerpost_git_pending_writes", "API writes that are not in a commit yet.",
			func() float64 { return float64(o.Git().Pending) }),
		gauge("fingerpost_git_ahead", "Commits that the upstream lacks.", func() float64 { return float64(o.Git().Ahead) }),
		gauge("fingerpost_git_behind", "Commits of the upstream that are not here.",
			func() float64 { return float64(o.Git().Behind) }),
		gauge("fingerpost_git_commit_failing", "1 while the last commit could not be made.",
			func() float64 { return boolValue(o.Git().CommitError != "") }),
		gauge("fingerpost_git_sync_failing", "1 while the last fetch, merge or push has failed.",
			func() float64 { return boolValue(o.Git().SyncError != "") }),
		gauge("fingerpost_git_overruled_branches", "Branches with writes that a commit from elsewhere has set aside.",
			func() float64 { return float64(len(o.Git().Overruled)) }),
		gauge("fingerpost_git_conflict", "1 while a person has to solve a conflict before anything is pulled or pushed.",
			func() float64 { return boolValue(o.Git().Conflict != "") }),
		gauge("fingerpost_git_last_commit_timestamp_seconds", "When the last commit was made, 0 if never.",
			func() float64 { return seconds(o.Git().LastCommit) }),
		gauge("fingerpost_git_last_fetch_timestamp_seconds", "When the last fetch succeeded, 0 if never.",
			func() float64 { return seconds(o.Git().LastFetch) }),
		gauge("fingerpost_git_last_push_timestamp_seconds", "When the last push succeeded, 0 if never.",
			func() float64 { return seconds(o.Git().LastPush) }),
	}
}
