package pebblefs

import (
	"context"
	"fmt"
	"log/slog"
)

// A Logger passes Pebble's messages on at debug level. The Dir reports the important ones, once.
type Logger struct {
	Log *slog.Logger
	Dir *Dir
}

func (l Logger) Infof(format string, args ...any) {
	if l.Log.Enabled(context.Background(), slog.LevelDebug) {
		l.Log.Debug(fmt.Sprintf(format, args...))
	}
}

func (l Logger) Errorf(format string, args ...any) { l.Infof(format, args...) }

// Fatalf fails the Dir instead of the process. Pebble relies on it not to return.
func (l Logger) Fatalf(format string, args ...any) {
	l.Dir.Fail(fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...)))
}
