package configsrc

import (
	"path/filepath"
	"sync/atomic"
	"time"

	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/folder"
	"fingerpost/configsrc/hclfile"
)

// A base is what is accepted, see edits.Base, with what looks have to know of it.
type base struct {
	*edits.Base
	o        Options
	redecode bool        // the decoder has changed: decode every file again, even with the same bytes
	live     atomic.Bool // the Sink serves answers: work on many files leaves one core free
}

func newBase(o Options) *base {
	return &base{o: o, Base: edits.NewBase(edits.Options{Dir: o.Dir, Clone: o.Clone, Live: o.Sink, Rules: o.rules,
		Fanout: o.Fanout, OpenSecret: o.OpenSecret})}
}

// rules are those of the decoder. An edge has none: its authority has accepted the files, and clocks and flags of the two
// differ.
func (o *Options) rules() hclfile.Rules {
	if o.Follow {
		return hclfile.Rules{}
	}
	return hclfile.Rules{Today: o.now().UTC().Format(time.DateOnly), Allow: o.Allow}
}

// revision tells apart what decodes the same bytes differently: releases, and with or without --public-url. What that
// makes a warning was accepted without one, so a start that lacks the flag for the first time decodes every file.
func (s *base) revision() uint64 {
	v := uint64(decoderRevision) << 1
	if s.Rules().Allow.NoPublicURL {
		v |= 1
	}
	return v
}

func (o *Options) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

// realDir returns the path of the config folder with links resolved. In a Clone none are followed.
func (s *base) realDir() (string, error) {
	if s.o.Clone != (folder.Clone{}) {
		return s.o.Clone.Dir(s.o.Dir), nil
	}
	return filepath.EvalSymlinks(s.o.Dir)
}

func (s *base) setLive(on bool) {
	s.live.Store(on)
	s.o.Sink.Pace(on)
}
