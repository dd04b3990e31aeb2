package configsrc

import (
	"context"
	"errors"
)

// An ask is a request to the goroutine that looks.
type ask struct {
	do   func(context.Context) error
	done chan error
}

func (s *Source) ask(ctx context.Context, do func(context.Context) error) error {
	a := ask{do, make(chan error, 1)}
	select {
	case s.asks <- a:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-a.done:
		return err
	case <-ctx.Done():
		return errors.Join(errors.New("the reload goes on"), ctx.Err())
	}
}

// inTurn runs do between two looks at the files.
func (s *Source) inTurn(ctx context.Context, do func(running context.Context) error) error {
	a := ask{done: make(chan error, 1), do: do}
	select {
	case s.asks <- a:
		return <-a.done // even if ctx is done: the branch may have moved already, and only the result tells
	case <-ctx.Done():
		return busy("the files are being reloaded")
	}
}
