package configsrc

import (
	"syscall"
	"testing"
)

// TestYieldToAnswers lowers the priority of one goroutine's thread and of no other.
func TestYieldToAnswers(t *testing.T) {
	nice := func() int {
		n, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0) // the system call returns 20 - nice
		if err != nil {
			t.Error(err)
		}
		return 20 - n
	}
	before := nice()
	inside := make(chan int)
	go func() {
		yieldToAnswers()
		inside <- nice()
	}()
	if got, want := <-inside, min(before+decodeNice, mostNice); got != want {
		t.Errorf("nice %d within, want %d", got, want)
	}
	if got := nice(); got != before {
		t.Errorf("nice %d outside, was %d", got, before)
	}
}
