package configsrc

import (
	"log/slog"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
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

// A reporter says how a Source is, in a Status and in the log.
type reporter struct {
	log      *slog.Logger
	edge     bool                // nothing is loaded before the first tree
	problems hclfile.Diagnostics // of the node itself

	// mu guards status. Only the goroutine that looks writes status.Held, so it reads it without the lock.
	mu     sync.Mutex
	status Status

	// The goroutine that looks owns the fields below.
	changed changes // since the last line in the log
	logged  uint64  // the generation of that line
	loaded  bool    // "config loaded" is in the log
}

// present returns the present state.
func (r *reporter) present() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

func (r *reporter) noteGeneration(g uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Generation = g
}

func (r *reporter) noteWatching(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Watching = on
}

// noteRoom says which resource of the disk is too low for API writes, "" if none is.
func (r *reporter) noteRoom(low string) {
	r.mu.Lock()
	before := r.status.LowDisk
	r.status.LowDisk = low
	r.mu.Unlock()
	switch {
	case low != "" && before == "":
		r.log.Warn("too little room on the disk of the config folder: API writes are refused, all else goes on", "room", low)
	case low == "" && before != "":
		r.log.Info("the disk of the config folder has room again: API writes go on")
	}
}

// isHeld reports whether a look is held back. Only the goroutine that looks may call it.
func (r *reporter) isHeld() bool { return r.status.Held != nil }

// noteHeld says that a look is held back, and logs that once.
func (r *reporter) noteHeld(h Held) {
	r.mu.Lock()
	before := r.status.Held
	h.Since = time.Now().UTC()
	if before != nil {
		h.Since = before.Since
	}
	r.status.Held = &h
	r.status.State = StateHeld
	r.status.LastReload = time.Now().UTC()
	r.mu.Unlock()
	if before == nil || before.Reason != h.Reason {
		r.log.Error("reload held back, everything goes on being served; confirm with \"fingerpost reload --confirm\"",
			"reason", h.Reason)
	}
}

// endHeld says that no look is held back any more.
func (r *reporter) endHeld() {
	r.mu.Lock()
	was := r.status.Held
	r.status.Held = nil
	r.mu.Unlock()
	if was != nil {
		r.log.Info("reload no longer held back", "reason", was.Reason)
	}
}

// noteChanged says that a file was committed, and who has brought it: nil if somebody has saved it here.
func (r *reporter) noteChanged(path string, by *catalog.Author) { r.changed.addFile(path, by) }

// noteFailure records a look that failed; everything is still served.
func (r *reporter) noteFailure(err error) {
	r.mu.Lock()
	before := r.status.Error
	r.status.State, r.status.Error, r.status.LastReload = StateFailed, err.Error(), time.Now().UTC()
	r.mu.Unlock()
	if before != err.Error() {
		r.log.Error("config reload failed, everything goes on being served", "error", err)
	}
}

// noteSuccess updates the status after a look that succeeded. problems are those of the files.
func (r *reporter) noteSuccess(start time.Time, word string, files int, total judge.Counts, quarantined int,
	problems hclfile.Diagnostics) {
	problems = append(append(hclfile.Diagnostics{}, r.problems...), problems...) // [] in JSON, not null
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
	r.mu.Lock()
	before := r.status
	st := &r.status
	st.LastReload = time.Now().UTC()
	st.LastSuccess = st.LastReload
	st.Files, st.Projects, st.Domains = files, total.Projects, total.Domains
	st.Problems, st.Errors, st.Warnings = problems, errors, warnings
	st.Quarantined, st.Error = quarantined, ""
	switch {
	case st.Held != nil:
		st.State = StateHeld
	case st.Quarantined > 0:
		st.State = StateProblems
	default:
		st.State = StateOK
	}
	now := *st
	r.mu.Unlock()
	r.logSuccess(start, word, before, now)
}

// logSuccess writes a line if something has changed. The first one of a process says "loaded"; an edge has it with its
// first tree.
func (r *reporter) logSuccess(start time.Time, word string, before, now Status) {
	changed := r.changed
	r.changed = changes{}
	logged := r.logged
	r.logged = now.Generation
	switch {
	case r.edge && now.Generation == 0:
		return
	case !r.loaded:
		word, r.loaded = "loaded", true
	case logged == now.Generation && before.Errors == now.Errors && before.State == now.State:
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
	r.log.Info("config "+word, line...)
}

// changes are the files that were committed since the last report.
type changes struct {
	n       int
	paths   []string // the first ones
	commits []string // the first ones of those that have brought them
}

// maxLogged is how many paths, and how many commits, a line of the log has.
const maxLogged = 5

func (c *changes) addFile(path string, by *catalog.Author) {
	if c.n++; len(c.paths) < maxLogged {
		c.paths = append(c.paths, path)
	}
	if by != nil && by.Commit != "" && len(c.commits) < maxLogged && !slices.Contains(c.commits, by.Commit) {
		c.commits = append(c.commits, by.Commit)
	}
}
