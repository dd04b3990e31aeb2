package conditions

import (
	"fingerpost/resolver/catalog"
)

const (
	validate  = `run "fingerpost validate" for the place and a hint`
	solve     = "solve it in the repository of the config folder; the server tries again by itself"
	maxErrors = 4 // errors of git that are told
)

// files are the conditions of the config files, and of writes into them.
var files = []Kind{
	{ID: "files-broken", Severity: Warning, Broken: true, Check: "files", Remedy: validate,
		Alert: Alert{"FilesQuarantined", "fingerpost_config_quarantined_files > 0", "10m",
			"{{ $labels.instance }} has {{ $value }} broken files, and serves what they said before"},
		find: func(s *State) []Condition {
			f, served := &s.Files, "."
			if f.Quarantined > 0 {
				served = "; what " + catalog.Count(f.Quarantined, "file") + " said before is served."
			}
			return told(f.Errors > 0, "The files have "+catalog.Count(f.Errors, "error")+served, f.FirstError)
		}},
	{ID: "files-warned", Severity: Info, Check: "files", Remedy: validate,
		Guide: "/docs/alerts#fingerpostfilesquarantined", Except: "warnings change nothing that is served",
		find: func(s *State) []Condition {
			return told(s.Files.Warnings > 0, "The files have "+catalog.Count(s.Files.Warnings, "warning")+".",
				s.Files.FirstWarning)
		}},
	{ID: "reload-held", Severity: Warning, Broken: true, Check: "files",
		Remedy: `look at what it would remove, then "fingerpost reload --confirm", or put the files back`,
		Alert: Alert{"ReloadHeld", "fingerpost_config_held == 1", "5m",
			"{{ $labels.instance }} holds a reload back that would remove a lot; nothing that was saved since is live"},
		find: func(s *State) []Condition {
			h := s.Files.Held
			if h == nil {
				return nil
			}
			return told(true, "A reload of the files is held back: it would remove "+catalog.Count(h.Projects, "project")+
				" and "+catalog.Count(h.Domains, "domain")+".", h.Reason, h.Since)
		}},
	{ID: "reload-failing", Severity: Warning, Broken: true, Check: "files",
		Remedy: "make the config folder readable for the service; it looks again by itself",
		Alert: Alert{"ReloadFailing", "fingerpost_config_failing == 1", "5m",
			"{{ $labels.instance }} cannot read its config folder; nothing that was saved since is live"},
		find: func(s *State) []Condition {
			return told(s.Files.Error != "", "The files could not be read; what was read before is served.", s.Files.Error,
				s.Files.LastSuccess)
		}},
	{ID: "writes-failing", Severity: Warning, Except: rate, Alert: Alert{"WritesFailing",
		`increase(fingerpost_config_writes_total{result="failed"}[5m]) > 0`, "5m",
		"{{ $labels.instance }} cannot write what clients change into the files"}},
	{ID: "config-disk-low", Severity: Warning, Broken: true, Check: "disk", Guide: diskGuide,
		Remedy: "make room on the disk of the config folder",
		Alert: Alert{"ConfigDiskLow", "fingerpost_config_disk_low == 1", "5m",
			"{{ $labels.instance }} refuses API writes: too little room on the disk of the config folder"},
		find: func(s *State) []Condition {
			return told(s.Files.LowDisk != "", "The disk is nearly full: changes are refused until there is room.",
				s.Files.LowDisk)
		}},
}

// git are the conditions of the repository of the files.
var git = []Kind{
	{ID: "git-behind", Severity: Warning, Check: "git",
		Remedy: "see that --git-pull is on, and what /status says under git",
		Alert: Alert{"GitBehind", "fingerpost_git_behind > 0", "15m",
			"{{ $labels.instance }} has not taken up {{ $value }} commits of its remote"},
		find: func(s *State) []Condition { // a conflict explains it
			return told(s.Git.Behind > 0 && s.Git.Conflict == "", "The git server has "+catalog.Count(s.Git.Behind, "commit")+
				" that "+isAre(s.Git.Behind)+" not live here yet.", "")
		}},
	{ID: "git-failing", Severity: Warning, Broken: true, Check: "git", Remedy: solve,
		Alert: Alert{"GitFailing", "fingerpost_git_commit_failing == 1 or fingerpost_git_sync_failing == 1", "10m",
			"{{ $labels.instance }} cannot commit, fetch or push"},
		find: func(s *State) (list []Condition) {
			for _, e := range s.Git.Errors[:min(maxErrors, len(s.Git.Errors))] {
				list = append(list, told(true, "Git does not work; the service goes on.", e)...)
			}
			return list
		}},
	{ID: "git-conflict", Severity: Warning, Broken: true, Check: "git", Remedy: solve,
		Alert: Alert{"GitConflict", "fingerpost_git_conflict == 1", "5m",
			"{{ $labels.instance }} pulls and pushes nothing until a person solves a conflict"},
		find: func(s *State) []Condition {
			return told(s.Git.Conflict != "", "Git needs a person: until then nothing is pulled or pushed.", s.Git.Conflict)
		}},
	{ID: "git-overruled", Severity: Warning, Check: "git",
		Remedy: "merge the branch fingerpost/overruled/… that keeps it, or delete that branch",
		Alert: Alert{"GitOverruled", "delta(fingerpost_git_overruled_branches[1h]) > 0", "",
			"{{ $labels.instance }}: a commit from elsewhere has set an API write aside"},
		find: func(s *State) []Condition {
			n := s.Git.Overruled
			return told(n > 0, catalog.Count(n, "change")+" "+isAre(n)+
				" set aside: a person's commit changed the same, and won.", "")
		}},
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
