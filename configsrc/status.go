package configsrc

import (
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"fingerpost/configsrc/hclfile"
	"fingerpost/resolver/catalog"
)

// The values of Status.State.
const (
	StateLoading  = "loading"
	StateOK       = "ok"
	StateProblems = "problems" // some file is quarantined
	StateHeld     = "held"     // the brake is on
	StateFailed   = "failed"   // the last look failed
)

// maxProblems bounds the list in a Status; the counts include all.
const maxProblems = 1000

// Status is the state of a Source. It contains no secret.
type Status struct {
	State       string              `json:"state"`
	Generation  uint64              `json:"generation"`
	LastReload  time.Time           `json:"lastReload"`  // the last look that found something, or failed
	LastSuccess time.Time           `json:"lastSuccess"` // the last look that succeeded
	Files       int                 `json:"files"`
	Projects    int                 `json:"projects"`
	Domains     int                 `json:"domains"`
	Quarantined int                 `json:"quarantined"` // files
	Errors      int                 `json:"errors"`
	Warnings    int                 `json:"warnings"`
	Problems    hclfile.Diagnostics `json:"problems"`
	Held        *Held               `json:"held"`
	Error       string              `json:"error,omitempty"`   // why the last look failed
	Watching    bool                `json:"watching"`          // events arrive; otherwise only the timer triggers looks
	LowDisk     string              `json:"lowDisk,omitempty"` // the resource that is too low for API writes
}

// Held describes what the brake holds back.
type Held struct {
	Reason   string `json:"reason"`
	Projects int    `json:"projects"` // to be removed
	Domains  int    `json:"domains"`
	// them with their files: projects first, at most 40; none if the whole folder is gone
	Removes []string  `json:"removes,omitempty"`
	Since   time.Time `json:"since"`
	// who has confirmed it, for OnConfirm; zero: the operator, at the ops listener or a start
	By catalog.Author `json:"-"`
}

// Status returns the present state.
func (s *Source) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

func (s *Source) setGeneration(g uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Generation = g
}

func (s *Source) setWatching(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Watching = on
}

// report updates the status after a look that succeeded.
func (s *Source) report(start time.Time, word string) {
	problems := append(hclfile.Diagnostics{}, s.o.Problems...) // [] in JSON, not null
	for _, q := range s.quarantine {
		problems = append(problems, q.Diags...)
	}
	problems = s.warnings.add(problems)
	errors := 0
	for _, d := range problems {
		if d.Severity == hclfile.Error {
			errors++
		}
	}
	warnings := len(problems) - errors
	problems.Sort()
	if len(problems) > maxProblems { // then the errors first
		sort.SliceStable(problems, func(i, j int) bool {
			return problems[i].Severity == hclfile.Error && problems[j].Severity != hclfile.Error
		})
		problems = problems[:maxProblems]
	}
	s.mu.Lock()
	before := s.status
	st := &s.status
	st.LastReload = time.Now().UTC()
	st.LastSuccess = st.LastReload
	st.Files, st.Projects, st.Domains = len(s.table.Files), s.table.Total.Projects, s.table.Total.Domains
	st.Problems, st.Errors, st.Warnings = problems, errors, warnings
	st.Quarantined, st.Error = len(s.quarantine), ""
	switch {
	case st.Held != nil:
		st.State = StateHeld
	case st.Quarantined > 0:
		st.State = StateProblems
	default:
		st.State = StateOK
	}
	now := *st
	s.mu.Unlock()
	s.logReport(start, word, before, now)
}

// logReport writes a line if something has changed. The first one of a process says "loaded"; an edge has it with its
// first tree.
func (s *Source) logReport(start time.Time, word string, before, now Status) {
	changed := s.changed
	s.changed = changes{}
	told := s.told
	s.told = now.Generation
	switch {
	case s.o.Follow && now.Generation == 0:
		return
	case !s.loaded:
		word, s.loaded = "loaded", true
	case told == now.Generation && before.Errors == now.Errors && before.State == now.State:
		return
	}
	line := []any{"generation", now.Generation, "files", now.Files, "projects", now.Projects, "domains", now.Domains,
		"quarantined", now.Quarantined, "seconds", math.Round(time.Since(start).Seconds()*1e5) / 1e5}
	if word != "loaded" {
		line = append(line, "changed", changed.n, "paths", changed.paths)
	}
	if len(changed.commits) > 0 {
		line = append(line, "commit", strings.Join(changed.commits, ","))
	}
	s.o.Logger.Info("config "+word, line...)
}

// changes are the files that were committed since the last report.
type changes struct {
	n       int
	paths   []string // the first ones
	commits []string // the first ones of those that have brought them
}

// maxLogged is how many paths, and how many commits, a line of the log has.
const maxLogged = 5

func (c *changes) add(path string, by *catalog.Author) {
	if c.n++; len(c.paths) < maxLogged {
		c.paths = append(c.paths, path)
	}
	if by != nil && by.Commit != "" && len(c.commits) < maxLogged && !slices.Contains(c.commits, by.Commit) {
		c.commits = append(c.commits, by.Commit)
	}
}

// fail records a look that failed; everything is still served.
func (s *Source) fail(err error) {
	s.mu.Lock()
	before := s.status.Error
	s.status.State, s.status.Error, s.status.LastReload = StateFailed, err.Error(), time.Now().UTC()
	s.mu.Unlock()
	if before != err.Error() {
		s.o.Logger.Error("config reload failed, everything goes on being served", "error", err)
	}
}
