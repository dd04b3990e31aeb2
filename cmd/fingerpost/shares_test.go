package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// A bounded is something of which there is only so much. Its key is the package and the name in the source.
type bounded struct {
	filledBy string // who can use all of it
	others   string // what everybody else still gets then
}

// shared lists everything in the house that is bounded and used by several, see TestSharedThings for what that is. What
// tenants can fill gives each its share (package share), or the table says why it need not.
var shared = map[string]bounded{
	"api/console: all": {
		"one key, or person of a provider whom a rule lets in, its 20 sessions; 50 of them all",
		"50 and more: 503 until a session ends, 8 h at most",
	},
	"api/console: ended": {
		"whoever holds sessions that end by themselves: 1,000 secrets",
		"all reasons are forgotten: the sign-in page opens without saying why the session has ended",
	},
	"api/console: checked": {
		"visitors of customers' pages",
		"all: the oldest is forgotten, a domain may be checked again before 30 s",
	},
	"api/events: streams": {
		"a key may have Options.PerKey of them, so several keys",
		"a 503, which clients try again",
	},
	"api/gate: good": {
		"peers with a good key",
		"the table only remembers them: forgotten, a peer is like a new one",
	},
	"api/gate: slots": {
		"peers, each up to ConnsPerPeer",
		"an eighth is kept for peers with a good key; quiet connections are closed for new ones",
	},
	"api/gateway/jwks: places": {
		"projects that name addresses of a slow provider",
		"a quarter of the places for another provider at once, then rounds by provider; no request waits",
	},
	"api/login: open": {
		"peers, by beginning sign-ins, here and at edges, which say who the peer is: one alone all of it",
		"a place each: the peer with the most loses its oldest sign-in; 400 after 10,000 begins of as many peers as that, and " +
			"the person begins again",
	},
	"api/mailapi: sends": {
		"projects with slow servers, each up to the mailer's bounds for a project",
		"their mails are accepted and queued at once, without the wait",
	},
	"api/mailapi: tests": {
		"a key with mail up to three quarters",
		"another key a quarter of the places at once; 429 to the key that has its share",
	},
	"api/ops/history: lanes": {
		"the operator's edges",
		"the edge without a value for longest loses its lane",
	},
	"api/ops: conns": {
		"the operator's probes",
		"the connection that is idle for longest is closed",
	},
	"api/client/tenant: waiting": {
		"the program itself, with a function of its own that is slow",
		"10,000 calls of its functions wait, further ones are left out; no lookup waits for them",
	},
	"cmd/fingerpost/doctor: turns": {
		"one command",
		"no other call uses it",
	},
	"configsrc/cluster: forwarding": {
		"a key, or a peer that signs in, alone three quarters of an edge's places, with slow requests",
		"a place at once, then rounds by key and peer; 503 after ForwardTime",
	},
	"configsrc/cluster: known": {
		"clients of NATS that invent edges",
		"a new edge is not listed until another is forgotten",
	},
	"configsrc/gitrepo: order": {
		"any key that writes",
		"a repeated question after an old write finds nothing; no write is lost",
	},
	"configsrc/gitrepo/plumbing: known": {
		"keys that write many files, one path each",
		"all paths are forgotten at once, and git is asked again where an attributes file names a filter",
	},
	"configsrc/proposals: turn": {
		"calls that change one proposal",
		"it is one proposal's alone: other proposals do not wait for it",
	},
	"configsrc/proposals: places": {
		"a key two of three, with calls that look at proposals",
		"another key one place at once, then rounds by key",
	},
	"configsrc/verify/authdns: turns": {
		"a project with many domains",
		"projects have their turns in rounds: a question waits for one of each other project",
	},
	"configsrc/verify/authdns: open": {
		"a project alone three quarters, with silent servers",
		"a place at once, then rounds by project",
	},
	"configsrc/verify: background": {
		"a project alone three quarters, with slow servers",
		"a place at once, then rounds by project",
	},
	"configsrc/verify: demands": {
		"a project alone three quarters, with slow servers",
		"a place at once, then rounds by project; 503 after 9 s",
	},
	"configsrc/folder: named": {
		"people who change very many files",
		"all files are looked at; nothing is lost",
	},
	"configsrc/folder: paths": {
		"people who change very many files",
		"all files are looked at; nothing is lost",
	},
	"mailer: fresh": {
		"one project its own",
		"it is a project's alone; further mails are queued",
	},
	"mailer: order": {
		"any key that sends, with --mail-sink",
		"the oldest kept texts go; the log keeps its entries",
	},
	"mailer/inbound: places": {
		"a provider its own block's, with its secret",
		"each block has its own; 503 to the block that is full, and its provider tries again",
	},
	"mailer/inbound: kept": {
		"a provider its own block's, with messages that name many certificates",
		"each block has its own; the oldest is dropped and fetched again",
	},
	"mailer/oauth: kept": {
		"projects that change their oauth settings again and again, with token servers that grant",
		"any token is dropped, and its account asks for another one at its next mail",
	},
	"mailer/sender: demands": {
		"a project alone three quarters, with slow name servers",
		"a place at once, then rounds by project; 503 after 10 s",
	},
	"mailer/webhook: places": {
		"webhooks whose receivers hang, three places each next to their own",
		"each webhook has one request on the wire outside of these; a place when one is free",
	},
	"resolver/ledger: turn": {
		"any writer, for one synced write",
		"they join the next batch: a wait is two syncs long at most",
	},
	"resolver/store: idle": {
		"requests that read at a time",
		"a reader that finds no room is closed, and made again when needed",
	},
	"resolver/trace: spans": {
		"any client, with --otlp",
		"the oldest spans are dropped and counted",
	},
	"resolver: c": {
		"names that are asked for most",
		"a miss: the answer is read from the store",
	},
	"resolver: known": {
		"projects that send mail",
		"all entries are dropped: a project is read from the store",
	},
	"resolver: m": {
		"the projects of the files, one entry each",
		"it grows with them; entries of removed projects are swept",
	},
	"resolver/search: lists": {
		"any key, with labels of its projects, until the next change",
		"a list by another term is made for each page: 2 ms at 100,000 projects",
	},
	"resolver: touched": {
		"any writer",
		"the index is dropped, and built by the next search",
	},
	// These count in ways that the test cannot find:
	"api/gateway: verifiedTokens": {
		"a project three quarters of each set, with tokens that its secret signs",
		"a quarter of each set; a token without a place is verified at each request",
	},
	"api/web: BodyBudget": {
		"a key up to BodiesPerKey bytes, so several keys",
		"503 until a body is handled",
	},
	"configsrc/edits: decodedFiles": {
		"any key that writes many projects",
		"a write decodes what it replaces: a fifth more CPU time, the same result",
	},
	"api: throttle": {
		"peers with wrong keys; those of one slot share it",
		"good keys pass; a wrong key gets 429 instead of 401",
	},
	"mailer/inbound: marks": {
		"a provider its own block's 500,000, with outcomes of 30 days",
		"each block has its own; 429 to the block that is full, a condition, and what it has marked stays applied once",
	},
	"mailer: slots": {
		"projects with queued mail",
		"outboxes whose server fails have half at most; the queue is first come, first served, with one entry a project",
	},
	"mailer: waiting": {
		"a project a tenth of the queue and a quarter of the bytes",
		"429 only when ten projects' queues are full; without bytes a mail is queued",
	},
}

// TestSharedThings finds everything in the source that is bounded and may be used by several: semaphores (channels of
// struct{} with room for more than one, or that a send waits for), x/sync/semaphore, limiters, package share, errgroup,
// caches of the library, and fields of structs with a lock whose length is compared with a bound. Each stands in the
// table with who can fill it, and what the others get.
func TestSharedThings(t *testing.T) {
	t.Parallel()
	found := map[string]string{} // key: where
	types := map[string]bool{}   // keys of all types
	for pkg, files := range sources(t) {
		maps.Copy(found, boundedIn(pkg, files))
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok {
					types[pkg+": "+spec.Name.Name] = true
				}
				return true
			})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		entry := shared[key]
		if entry.filledBy == "" || entry.others == "" {
			t.Errorf("%s (%s) is bounded: the table must say who fills it, and what the others get", key, found[key])
		}
	}
	for key := range shared {
		if found[key] == "" && !types[key] {
			t.Errorf("%s stands in the table, and does not exist", key)
		}
	}
}

// sources parses the service's own code, by package.
func sources(t *testing.T) map[string]map[string]*ast.File {
	packages := map[string]map[string]*ast.File{}
	set := token.NewFileSet()
	for _, file := range tracked(t) {
		switch {
		case path.Ext(file) != ".go", strings.HasSuffix(file, "_test.go"), strings.HasPrefix(file, "bench/"),
			strings.Contains(file, "testdata/"), strings.HasPrefix(file, "cmd/testrig"):
			continue
		}
		f, err := parser.ParseFile(set, "../../"+file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		pkg := path.Dir(file)
		if packages[pkg] == nil {
			packages[pkg] = map[string]*ast.File{}
		}
		packages[pkg][file] = f
	}
	return packages
}

// makers are the functions whose result is bounded, and shared.
var makers = []string{"share.New", "share.NewTurns", "rate.NewLimiter", "semaphore.NewWeighted", "ristretto.NewCache"}

// boundedIn finds what is bounded in a package: key and file.
func boundedIn(pkg string, files map[string]*ast.File) map[string]string {
	found := map[string]string{}
	waited := map[string]bool{} // names of channels that a send waits for
	locked := map[string]bool{} // fields of structs with a lock
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool { return noteSends(n, waited) })
		ast.Inspect(f, func(n ast.Node) bool { return noteLocked(n, locked) })
	}
	for file, f := range files {
		note := func(name ast.Node) { found[pkg+": "+lastName(name)] = path.Base(file) }
		ast.Inspect(f, func(n ast.Node) bool {
			for name, value := range assigned(n) {
				call, ok := value.(*ast.CallExpr)
				if !ok {
					continue
				}
				if isSemaphore(call, waited[lastName(name)]) || slices.Contains(makers, sourceOf(call.Fun)) {
					note(name)
				}
			}
			if c, ok := n.(*ast.CallExpr); ok && lastName(c.Fun) == "SetLimit" {
				note(c.Fun)
			}
			if b, ok := n.(*ast.BinaryExpr); ok {
				if of := lengthWithBound(b); of != nil && locked[lastName(of)] {
					note(of)
				}
			}
			return true
		})
	}
	return found
}

// noteSends notes the names of channels with a send that waits: one outside of a select with a default.
func noteSends(n ast.Node, waited map[string]bool) bool {
	switch n := n.(type) {
	case *ast.SendStmt:
		waited[lastName(n.Chan)] = true
	case *ast.SelectStmt:
		hasDefault := slices.ContainsFunc(n.Body.List, func(s ast.Stmt) bool { return s.(*ast.CommClause).Comm == nil })
		if !hasDefault {
			return true
		}
		for _, s := range n.Body.List { // its sends do not wait; what follows them may
			for _, s := range s.(*ast.CommClause).Body {
				ast.Inspect(s, func(n ast.Node) bool { return noteSends(n, waited) })
			}
		}
		return false
	}
	return true
}

// assigned yields the names and values of an assignment, a declaration, or a field of a composite literal.
func assigned(n ast.Node) map[ast.Node]ast.Expr {
	values := map[ast.Node]ast.Expr{}
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		values[n.Key] = n.Value
	case *ast.AssignStmt:
		for i, value := range n.Rhs {
			values[n.Lhs[i]] = value
		}
	case *ast.ValueSpec:
		for i, value := range n.Values {
			values[n.Names[i]] = value
		}
	}
	return values
}

// isSemaphore reports whether a call makes a buffered channel of struct{}. One of capacity 1 is a semaphore if a send
// waits for it, and else wakes a goroutine.
func isSemaphore(call *ast.CallExpr, waited bool) bool {
	return sourceOf(call.Fun) == "make" && len(call.Args) == 2 && sourceOf(call.Args[0]) == "chan struct{}" &&
		(waited || sourceOf(call.Args[1]) != "1")
}

// noteLocked notes the fields of structs with a lock: several goroutines share them.
func noteLocked(n ast.Node, locked map[string]bool) bool {
	s, ok := n.(*ast.StructType)
	if !ok {
		return true
	}
	isLock := func(f *ast.Field) bool {
		return slices.Contains([]string{"sync.Mutex", "sync.RWMutex"}, sourceOf(f.Type))
	}
	if slices.ContainsFunc(s.Fields.List, isLock) {
		for _, f := range s.Fields.List {
			for _, name := range f.Names {
				locked[name.Name] = true
			}
		}
	}
	return true
}

// lengthWithBound returns x of a comparison of len(x), a field, with anything but a number or another length.
func lengthWithBound(b *ast.BinaryExpr) ast.Expr {
	switch b.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL:
	default:
		return nil
	}
	for _, side := range [][2]ast.Expr{{b.X, b.Y}, {b.Y, b.X}} {
		call, ok := side[0].(*ast.CallExpr)
		if !ok || sourceOf(call.Fun) != "len" {
			continue
		}
		if field, ok := call.Args[0].(*ast.SelectorExpr); ok && lastName(side[1]) != "" {
			return field
		}
	}
	return nil
}

// lastName returns the last identifier of an expression: that of the field in a.b.field.
func lastName(n ast.Node) string {
	switch n := n.(type) {
	case *ast.Ident:
		return n.Name
	case *ast.SelectorExpr:
		return n.Sel.Name
	case *ast.IndexExpr:
		return lastName(n.X)
	}
	return ""
}

func sourceOf(n ast.Node) string {
	var b strings.Builder
	if err := printer.Fprint(&b, token.NewFileSet(), n); err != nil {
		return fmt.Sprint(err)
	}
	return b.String()
}
