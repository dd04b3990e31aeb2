package configsrc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"

	"fingerpost/configsrc/edits"
	"fingerpost/configsrc/hclfile"
	"fingerpost/configsrc/judge"
)

// Noted reports whether the watch has recorded a path that no look has handled yet.
func (s *Source) Noted(path string) bool {
	return s.loop.watching.watch.Pending(path)
}

// HashSweep is what the timer does once a minute. Run must be running.
func (s *Source) HashSweep(ctx context.Context) error {
	return s.turns.askFor(ctx, func(ctx context.Context) error {
		s.loop.lookAtSwept(ctx, &loopState{underway: 1}, s.loop.sweeps.sweepHashes(ctx))
		return nil
	})
}

// StatSweep is what the timer does every five seconds. Run must be running.
func (s *Source) StatSweep(ctx context.Context) error {
	return s.turns.askFor(ctx, func(ctx context.Context) error {
		s.loop.lookAtSwept(ctx, &loopState{underway: 1}, s.loop.sweeps.sweepStats(ctx))
		return nil
	})
}

// Racy reports whether a file's stamp cannot be trusted yet.
func (s *Source) Racy(path string) bool { return s.base.FileAt(path).Racy.Load() }

// Recent compares the kept decoded forms with fresh ones, and returns their paths and the bytes of their texts.
func (s *Source) Recent() (paths []string, bytes int, err error) {
	s.writer.EachKept(func(k *edits.Kept) {
		fresh := &judge.Content{Bytes: k.Content.Bytes}
		result := fresh.Decode(s.base.Display(k.Path), nil, hclfile.Rules{Today: k.Day})
		if sha256.Sum256(fresh.Bytes) != k.Hash || !reflect.DeepEqual(k.Content, fresh) {
			err = errors.Join(err, fmt.Errorf("%s is decoded as %+v, and was kept as %+v", k.Path, fresh, k.Content))
		}
		for _, ref := range fresh.Refs {
			if result.Position(ref) != k.Result.Position(ref) || result.Digest(ref) != k.Result.Digest(ref) {
				err = errors.Join(err, fmt.Errorf("%s: the block of %v is at another place", k.Path, ref))
			}
		}
		paths, bytes = append(paths, k.Path), bytes+len(fresh.Bytes)
	})
	return paths, bytes, err
}

// SecondLook is how long a suspicious state must hold.
const SecondLook = secondLook
