package configsrc

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"

	"fingerpost/resolver/catalog"
)

// Decoding is most of the work of a bulk look, and most of the memory that it makes and forgets. In a process of its own,
// of the lowest priority, it takes what time the machine has to spare, and the garbage collector of the one that answers
// has nothing to do with it. That process knows the folder and nothing else: files in which there is anything to say
// about, or that are not plain declarations, are left to the one that asked. What it makes of the others goes to a spool,
// a file without a name, so that a hundred thousand of them take no memory while they wait for each other.

// DecodeFiles answers the asks on r until it ends: the other end of Options.Apart. pack is that of the Sink.
func DecodeFiles(dir string, spool io.Writer, pack func(*catalog.Declared) []byte, r io.Reader, w io.Writer) error {
	t, err := openTree(dir)
	if err != nil {
		return err
	}
	defer t.Close()
	in, out := wireReader{r: bufio.NewReader(r)}, wireWriter{w: bufio.NewWriterSize(w, 64<<10)}
	var at int64
	for {
		var ask apartAsk
		if err := in.next(); errors.Is(err, io.EOF) {
			return out.w.Flush()
		} else if err != nil {
			return err
		}
		if ask.read(&in); in.failed {
			return errWire
		}
		answer, content := answerApart(t, pack, ask)
		if answer.at = at; len(content) > 0 {
			if _, err := spool.Write(content); err != nil {
				return err
			}
			at += int64(len(content))
		}
		answer.write(&out)
		if err := out.send(); err != nil {
			return err
		}
		if in.r.Buffered() == 0 { // who asks waits
			if err := out.w.Flush(); err != nil {
				return err
			}
		}
	}
}

// answerApart reads one file. content is for the spool.
func answerApart(t *tree, pack func(*catalog.Declared) []byte, ask apartAsk) (a apartAnswer, content []byte) {
	b, stamp, err := t.read(ask.path, MaxFileBytes)
	if err != nil {
		return a, nil
	}
	if ask.known && stamp.Hash == ask.hash {
		return apartAnswer{sound: true, same: true, stamp: stamp}, nil
	}
	c := candidate{path: ask.path, bytes: b, stamp: stamp}
	c.decode(ask.path, t)
	if c.declared == nil || len(c.diags) > 0 || c.plain || len(c.fresh) > 0 || c.declared.Sealing != nil {
		return a, nil
	}
	packed := pack(c.declared)
	return apartAnswer{sound: true, stamp: stamp, packed: len(packed), bytes: len(b),
		objects: c.objects, counts: c.counts, claims: c.claims, deps: c.deps}, append(packed, b...)
}

// An apart is the process at work, as the one that asks it sees it.
type apart struct {
	cmd    *exec.Cmd
	in     wireReader
	answer apartAnswer   // the last one, whose memory the next one takes
	spool  *os.File      // closed when nothing in it is waited for any more
	asked  chan struct{} // closed once all asks are sent, or nobody reads them
}

// startApart starts the process and sends it the asks. Nil: it cannot be had, or there is none. Until it is closed, the
// table must not change.
func (s *Source) startApart(ctx context.Context, t *tree, todo []entry) *apart {
	if s.o.Apart == nil {
		return nil
	}
	root, err := t.root.Open(".") // the folder that this look sees, wherever a link above it leads by now
	if err != nil {
		return nil
	}
	defer root.Close()
	spool, err := os.CreateTemp("", "fingerpost-*.spool")
	if err != nil {
		return nil
	}
	if err := os.Remove(spool.Name()); err != nil {
		spool.Close()
		return nil
	}
	cmd := s.o.Apart(ctx)
	cmd.ExtraFiles = []*os.File{root, spool}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil
	}
	if err := startLow(cmd); err != nil {
		s.o.Logger.Warn("files are decoded in the serving process: another one cannot be started", "err", err)
		return nil
	}
	a := &apart{cmd: cmd, spool: spool, in: wireReader{r: bufio.NewReaderSize(out, 64<<10)}, asked: make(chan struct{})}
	go func() {
		defer close(a.asked)
		defer in.Close() // the process ends with it
		s.askApart(in, todo)
	}()
	return a
}

// askApart sends the asks, as long as somebody reads them.
func (s *Source) askApart(w io.Writer, todo []entry) {
	out := wireWriter{w: bufio.NewWriterSize(w, 64<<10)}
	for i := range todo {
		ask := apartAsk{path: todo[i].path}
		if prev := s.table.files[ask.path]; prev != nil && !s.recheck {
			ask.known, ask.hash = true, prev.stamp.Hash
		}
		ask.write(&out)
		if out.send() != nil {
			return // it is gone, as its answers will tell
		}
	}
	_ = out.w.Flush()
}

// next is the next answer, valid until the one after it; nil once the process is of no more use.
func (a *apart) next() *apartAnswer {
	if a.in.next() != nil {
		return nil
	}
	if a.answer.read(&a.in); a.in.failed {
		return nil
	}
	return &a.answer
}

// close ends the process.
func (a *apart) close() {
	_ = a.cmd.Process.Kill() // it has nothing to lose
	<-a.asked
	_ = a.cmd.Wait()
}

// candidates come from the allocator by the slab: a large change has a hundred thousand.
const slab = 64

// examineApart has the files read and decoded by another process, and those itself that the other one leaves to it. It
// returns how many it has done: less than all where there is no such process, or no more.
func (s *Source) examineApart(ctx context.Context, t *tree, todo []entry, took func(i int, c *candidate, touched bool), one func(i int)) (done int) {
	a := s.startApart(ctx, t, todo)
	if a == nil {
		return 0
	}
	defer a.close()
	var room []candidate
	for ; done < len(todo) && ctx.Err() == nil; done++ {
		answer := a.next()
		if answer == nil {
			return done
		}
		e := &todo[done]
		prev := s.table.files[e.path]
		if !answer.sound || e.err != nil || s.bad[e.path] != nil || answer.same &&
			(prev == nil || !depsUnchanged(t, prev.deps) || s.reread && !depsAsKnown(t, prev.deps)) {
			one(done)
			continue
		}
		if len(room) == 0 {
			room = make([]candidate, slab)
		}
		c := &room[0]
		room = room[1:]
		c.path, c.prev, c.stamp = e.path, prev, answer.stamp
		if c.touched = answer.same; c.touched {
			c.deps = prev.deps
		} else {
			c.deps, c.objects, c.counts = slices.Clone(answer.deps), answer.objects, answer.counts
			c.spool = catalog.Spool{From: a.spool, At: answer.at, Packed: answer.packed, Bytes: answer.bytes}
			c.claim(answer.claims)
		}
		took(done, c, c.touched)
	}
	return done
}
