package configsrc

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"io"
	"os"
	"os/exec"

	"fingerpost/resolver/catalog"
)

// Decoding is most of the work of a bulk look, and most of the memory that it makes and forgets. In a process of its own,
// of the lowest priority, it takes what time the machine has to spare, and the garbage collector of the one that answers
// has nothing to do with it. That process knows the folder and nothing else: files in which there is anything to say
// about, or that are not plain declarations, are left to the one that asked. What it makes of the others goes to a spool,
// a file without a name, so that a hundred thousand of them take no memory while they wait for each other.

// An apartAsk is a file to be read.
type apartAsk struct {
	Path  string
	Known bool     // it has been accepted with the content of this hash
	Hash  [32]byte // then there is no need to decode it
}

// An apartAnswer is what was read. Answers come in the order of the asks.
type apartAnswer struct {
	Sound  bool // it decodes without a word; else nothing else is set
	Same   bool // it has the known hash; then Stamp alone is set
	Stamp  catalog.Stamp
	At     int64 // in the spool
	Packed int   // lengths
	Bytes  int
	Refs   []catalog.Ref
	Deps   []catalog.Dep
}

// DecodeFiles answers the asks on r until it ends: the other end of Options.Apart. pack is that of the Sink.
func DecodeFiles(dir string, spool io.Writer, pack func(*catalog.Declared) []byte, r io.Reader, w io.Writer) error {
	t, err := openTree(dir)
	if err != nil {
		return err
	}
	defer t.Close()
	in, out := bufio.NewReader(r), bufio.NewWriterSize(w, 64<<10)
	asks, answers := gob.NewDecoder(in), gob.NewEncoder(out)
	var at int64
	for {
		var ask apartAsk
		if err := asks.Decode(&ask); errors.Is(err, io.EOF) {
			return out.Flush()
		} else if err != nil {
			return err
		}
		answer, content := answerApart(t, pack, ask)
		if answer.At = at; len(content) > 0 {
			if _, err := spool.Write(content); err != nil {
				return err
			}
			at += int64(len(content))
		}
		if err := answers.Encode(&answer); err != nil {
			return err
		}
		if in.Buffered() == 0 { // who asks waits
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

// answerApart reads one file. content is for the spool.
func answerApart(t *tree, pack func(*catalog.Declared) []byte, ask apartAsk) (a apartAnswer, content []byte) {
	b, stamp, err := t.read(ask.Path, MaxFileBytes)
	if err != nil {
		return a, nil
	}
	if ask.Known && stamp.Hash == ask.Hash {
		return apartAnswer{Sound: true, Same: true, Stamp: stamp}, nil
	}
	c := candidate{path: ask.Path, bytes: b, stamp: stamp}
	c.decode(ask.Path, t)
	if c.declared == nil || len(c.diags) > 0 || c.plain || len(c.fresh) > 0 || c.declared.Sealing != nil {
		return a, nil
	}
	packed := pack(c.declared)
	return apartAnswer{Sound: true, Stamp: stamp, Packed: len(packed), Bytes: len(b), Refs: c.refs, Deps: c.deps}, append(packed, b...)
}

// An apart is the process at work, as the one that asks it sees it.
type apart struct {
	cmd     *exec.Cmd
	answers *gob.Decoder
	spool   *os.File // closed when nothing in it is waited for any more
}

// startApart starts the process and sends it the asks. Nil: it cannot be had, or there is none.
func (s *Source) startApart(ctx context.Context, t *tree, asks []apartAsk) *apart {
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
	go func() {
		defer in.Close() // the process ends with it
		w := bufio.NewWriterSize(in, 64<<10)
		e := gob.NewEncoder(w)
		for i := range asks {
			if e.Encode(&asks[i]) != nil {
				return // it is gone, as its answers will tell
			}
		}
		w.Flush()
	}()
	return &apart{cmd: cmd, spool: spool, answers: gob.NewDecoder(bufio.NewReaderSize(out, 64<<10))}
}

// next is the next answer; false once the process is of no more use.
func (a *apart) next() (answer apartAnswer, ok bool) {
	return answer, a.answers.Decode(&answer) == nil
}

// close ends the process.
func (a *apart) close() {
	_ = a.cmd.Process.Kill() // it has nothing to lose
	_ = a.cmd.Wait()
}

// examineApart has the files read and decoded by another process, and those itself that the other one leaves to it. It
// returns how many it has done: less than all where there is no such process, or no more.
func (s *Source) examineApart(ctx context.Context, t *tree, todo []entry, took func(i int, c *candidate, touched bool), one func(i int)) (done int) {
	asks := make([]apartAsk, len(todo))
	for i := range todo {
		asks[i].Path = todo[i].path
		if prev := s.table.files[todo[i].path]; prev != nil && !s.recheck {
			asks[i].Known, asks[i].Hash = true, prev.stamp.Hash
		}
	}
	a := s.startApart(ctx, t, asks)
	if a == nil {
		return 0
	}
	defer a.close()
	for ; done < len(todo) && ctx.Err() == nil; done++ {
		answer, ok := a.next()
		if !ok {
			return done
		}
		e := todo[done]
		prev := s.table.files[e.path]
		switch {
		case !answer.Sound || e.err != nil || s.bad[e.path] != nil || answer.Same && !depsUnchanged(t, prev.deps):
			one(done)
		case !answer.Same:
			c := &candidate{path: e.path, prev: prev, stamp: answer.Stamp, refs: answer.Refs, deps: answer.Deps}
			c.spool = catalog.Spool{From: a.spool, At: answer.At, Packed: answer.Packed, Bytes: answer.Bytes}
			gatherNames(c.refs)
			c.claims = claimsOf(c.refs)
			took(done, c, false)
		default:
			took(done, &candidate{path: e.path, prev: prev, stamp: answer.Stamp, deps: prev.deps, touched: true}, true)
		}
	}
	return done
}

// gatherNames puts the names of refs into one piece of memory: a change of many files has a million of them, which the
// garbage collector would have to visit one by one.
func gatherNames(refs []catalog.Ref) {
	var all []byte
	for i := range refs {
		all = append(append(all, refs[i].Name...), refs[i].KeyID...)
	}
	rest := string(all)
	for i := range refs {
		r := &refs[i]
		r.Kind = catalog.KnownKind(r.Kind)
		r.Name, rest = rest[:len(r.Name)], rest[len(r.Name):]
		r.KeyID, rest = rest[:len(r.KeyID)], rest[len(r.KeyID):]
	}
}
