package conformance_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"fingerpost/cmd/testrig"
)

// answerLimit is how long the runner waits for a driver.
const answerLimit = time.Minute

// A language is a client with its driver program.
type language struct {
	name    string
	command func(t testing.TB) *exec.Cmd
}

// A driver is the program that has the client.
type driver struct {
	t    testing.TB
	cmd  *exec.Cmd
	in   io.WriteCloser
	done chan struct{}

	mu      sync.Mutex // guards what follows
	next    int
	waiting map[int]chan driven

	log testrig.Log // its standard error
}

// A driven is an answer of a driver.
type driven struct {
	ID     int
	OK     bool
	Error  string
	Tenant *struct {
		ID                                     int64
		UUID, Slug, Name, Status, Domain, ETag string
		Labels                                 map[string]string
		AsOf                                   time.Time
		Stale                                  bool
	}
	Status *struct {
		Connected          bool
		Position           string
		Entries, Negatives int
		LastError          string
	}
	Hosts []string
}

func startDriver(t testing.TB, l language) *driver {
	t.Helper()
	d := &driver{t: t, cmd: l.command(t), waiting: map[int]chan driven{}, done: make(chan struct{})}
	d.cmd.Stderr = &d.log
	var err error
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := d.cmd.StdoutPipe()
	if err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go d.read(out)
	return d
}

func (d *driver) read(out io.Reader) {
	defer close(d.done)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var a driven
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			_, _ = fmt.Fprintf(&d.log, "not an answer: %v: %s\n", err, lines.Text())
			continue
		}
		d.mu.Lock()
		c := d.waiting[a.ID]
		delete(d.waiting, a.ID)
		d.mu.Unlock()
		if c != nil {
			c <- a
		}
	}
}

type object map[string]any

// begin sends a request; the answer comes through the channel.
func (d *driver) begin(do string, o object) <-chan driven {
	d.mu.Lock()
	d.next++
	o["id"], o["do"] = d.next, do
	c := make(chan driven, 1)
	d.waiting[d.next] = c
	d.mu.Unlock()
	line, err := json.Marshal(o)
	if err == nil {
		_, err = d.in.Write(append(line, '\n'))
	}
	if err != nil {
		c <- driven{Error: err.Error()}
	}
	return c
}

func (d *driver) ask(do string, o object) driven {
	d.t.Helper()
	select {
	case a := <-d.begin(do, o):
		return a
	case <-d.done:
		d.t.Fatalf("the driver has ended:\n%s", d.log.String())
	case <-time.After(answerLimit):
		d.t.Fatalf("the driver does not answer %s %v:\n%s", do, o, d.log.String())
	}
	return driven{}
}

// kill ends the process as a crash does.
func (d *driver) kill() {
	_ = d.cmd.Process.Kill()
	<-d.done
	_ = d.cmd.Wait()
}

// end lets the driver end by itself.
func (d *driver) end() {
	_ = d.in.Close()
	select {
	case <-d.done:
	case <-time.After(answerLimit):
		d.t.Error("the driver does not end with its input")
		_ = d.cmd.Process.Kill()
		<-d.done
	}
	if err := d.cmd.Wait(); err != nil {
		d.t.Errorf("the driver: %v\n%s", err, d.log.String())
	}
	if d.t.Failed() && os.Getenv("CI") == "" {
		d.t.Logf("the driver's log:\n%s", d.log.String())
	}
}
