// Package doctor checks an installation: what serve with the same options needs from the machine, and whether it has it.
// Examine runs every check of one table (checks) and returns their results, all problems at once.
//
// It promises that
//   - nothing on the disk changes: no file or folder is made or written, and no lock is kept,
//   - a server that runs on the data folder is asked at its ops listener, and neither its lock nor its ports are tried,
//   - every result that is not OK says what to do,
//   - a check that needs the network ends within seconds, and all of them run at the same time,
//   - no secret is in a result.
//
// It needs Options that serve would accept, the user and the environment of the service: what root may read says nothing
// about another user, and env() in a file is looked up in this process.
//
// It does not decide anything itself: a running server says which conditions need a person, the config files are checked
// by configsrc, git by gitrepo, addresses and the disk by node, NATS by cluster, relays by smtp, as serve would. It has no
// list of what a correct installation looks like beyond that, repairs nothing, sends no mail and logs in nowhere but at
// NATS.
package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"fingerpost/cmd/fingerpost/node"
	"fingerpost/configsrc/gitrepo"
	"fingerpost/configsrc/offline"
	"fingerpost/resolver/pebblefs"
)

// A State is how bad a result is.
type State string

// The states.
const (
	OK      State = "ok"
	Warning State = "warning"
	Failure State = "failure"
)

// A Result is one line of the examination.
type Result struct {
	Check   string `json:"check"`
	State   State  `json:"state"`
	Message string `json:"message"`
	Todo    string `json:"todo"` // "" if and only if the state is OK
}

func ok(format string, args ...any) Result {
	return Result{State: OK, Message: fmt.Sprintf(format, args...)}
}

func warning(todo, format string, args ...any) Result {
	return Result{State: Warning, Message: fmt.Sprintf(format, args...), Todo: todo}
}

func failure(todo, format string, args ...any) Result {
	return Result{State: Failure, Message: fmt.Sprintf(format, args...), Todo: todo}
}

// Options say what to examine.
type Options struct {
	node.Options
	Built time.Time // of the program's commit; zero: unknown
	SMTP  bool      // connect to each relay of the files
	Login bool      // go through the sign-in at each provider of the files
}

// patience is how long a check may wait for the network.
const patience = 5 * time.Second

// A patient is what the checks look at.
type patient struct {
	Options
	running  *server               // nil: none on this data folder
	another  *server               // at the ops listener, but with another data folder
	holder   *pebblefs.LockedError // nil: no process has the data folder
	lockErr  error                 // why that is not known
	checked  *offline.Checked      // of the config folder; nil: an edge, or it cannot be read
	filesErr error                 // why it cannot be read
	remote   *gitrepo.Remote       // nil: git needs none, or gitErr
	gitErr   error
}

// checks are all checks, in the order of their results. One that does not apply has no result.
var checks = []struct {
	name string
	run  func(p *patient, ctx context.Context) []Result
}{
	{"server", (*patient).server},
	{"files", (*patient).files},
	{"permissions", (*patient).permissions},
	{"owner", (*patient).owner},
	{"secrets", (*patient).secrets},
	{"tls", (*patient).certificate},
	{"store", (*patient).store},
	{"disk", (*patient).disk},
	{"open files", (*patient).openFiles},
	{"clock", (*patient).clock},
	{"git", (*patient).git},
	{"dns", (*patient).dns},
	{"verification", (*patient).verification},
	{"smtp", (*patient).smtp},
	{"login", (*patient).login},
	{"nats", (*patient).nats},
	{"edges", asked("edges")},
	{"mail", asked("mail")},
	{"domains", asked("domains")},
	{"webhooks", asked("webhooks")},
	{"keys", asked("keys")},
	{"listeners", (*patient).listeners},
}

// longest is how long all checks together may take, once the config files are read.
const longest = 2 * time.Minute

// Examine runs all checks, and returns nothing if ctx ends first.
func Examine(ctx context.Context, o Options) []Result {
	done := make(chan []Result, 1)
	go func() { done <- examine(ctx, &patient{Options: o}) }() // a file system may hang
	select {
	case all := <-done:
		return all
	case <-ctx.Done():
		return nil
	}
}

func examine(ctx context.Context, p *patient) (all []Result) {
	p.holder, p.lockErr = pebblefs.Holder(p.Files.Data)
	p.findServer(ctx)
	if !p.Cluster.IsEdge() {
		end := p.Loading()
		p.checked, p.filesErr = offline.CheckWith(p.Files.Config,
			offline.Options{Allow: p.Allow, Progress: p.OnProgress})
		end()
	}
	p.findRepository(ctx)
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	found := make([]chan []Result, len(checks))
	for i, c := range checks {
		found[i] = make(chan []Result, 1)
		go func() { found[i] <- c.run(p, ctx) }()
	}
	for i, c := range checks {
		var rs []Result
		select {
		case rs = <-found[i]:
		case <-ctx.Done():
			select {
			case rs = <-found[i]:
			default:
				rs = []Result{failure("look whether a file system or the network hangs", "no result after %v", longest)}
			}
		}
		for _, r := range rs {
			r.Check, r.Message, r.Todo = c.name, plain(r.Message), plain(r.Todo)
			all = append(all, r)
		}
	}
	return all
}

// maxText bounds a message, in bytes: it may quote what another machine has said.
const maxText = 1000

// plain makes one printable line.
func plain(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }), " ")
}
