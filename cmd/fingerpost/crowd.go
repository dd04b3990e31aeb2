package main

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// A crowd lets more goroutines be at work than there are cores (GOMAXPROCS) while many API writes wait for the disk. A
// goroutine in a system call keeps its place until the runtime takes it away, about 0.1 ms later: with as many fsyncs
// under way as there are cores, all else stands still meanwhile. As resolve takes more processor time with more places,
// they are there only as long as writes come in crowds. So is the collector's patience, see collectSeldom. Safe for
// concurrent use.
type crowd struct {
	enough int           // writes at a time that make a crowd
	quiet  time.Duration // without a crowd, until it is over
	more   func()        // again now and then, while there is a crowd
	usual  func()

	mu    sync.Mutex // guards what follows
	until time.Time  // the crowd is over; zero: there is none
}

// crowdPerCore is how many writes a core make a crowd.
const crowdPerCore = 4

func newCrowd() *crowd {
	usual := usualPlaces()
	return &crowd{
		enough: crowdPerCore * usual, quiet: time.Second,
		more: func() {
			if n := 2 * usual; n > runtime.GOMAXPROCS(0) { // the machine may have more cores than at the start
				runtime.GOMAXPROCS(n)
			}
			collectSeldom()
		},
		usual: func() {
			setUsualPlaces()
			collectAsUsual()
		},
	}
}

// usualPlaces is GOMAXPROCS as the environment, or else the machine, has it.
func usualPlaces() int {
	if n, err := strconv.Atoi(os.Getenv("GOMAXPROCS")); err == nil && n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// setUsualPlaces sets GOMAXPROCS to that. Where the machine has the word, the runtime follows it again.
func setUsualPlaces() {
	if n, err := strconv.Atoi(os.Getenv("GOMAXPROCS")); err == nil && n > 0 {
		runtime.GOMAXPROCS(n)
		return
	}
	runtime.SetDefaultGOMAXPROCS()
}

// writes is told how many writes are under way now.
func (c *crowd) writes(n int) {
	if n < c.enough {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until.IsZero() {
		c.more()
		time.AfterFunc(c.quiet, c.look)
	}
	c.until = time.Now().Add(c.quiet)
}

// look ends the crowd, or looks again later.
func (c *crowd) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if left := time.Until(c.until); left > 0 {
		c.more()
		time.AfterFunc(left, c.look)
		return
	}
	c.until = time.Time{}
	c.usual()
}
