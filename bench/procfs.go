package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit in which the kernel reports process times: 1/100 s on every architecture that Go supports.
const clockTick = 10 * time.Millisecond

// processCPU returns the CPU time of a process so far, in user and kernel mode, all threads together.
func processCPU(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return parseStat(b)
}

// descendants returns the child processes of a process, recursively. A kernel without CONFIG_PROC_CHILDREN shows none.
func descendants(pid int) (pids []int) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil
	}
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has just ended
		}
		for field := range strings.FieldsSeq(string(b)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(append(pids, child), descendants(child)...)
			}
		}
	}
	return pids
}

var errStat = errors.New("read CPU time: /proc/PID/stat has another form than expected")

// parseStat adds the fields utime and stime, the 14th and 15th. The second is the program's name in parentheses, which
// may itself hold spaces and parentheses.
func parseStat(b []byte) (time.Duration, error) {
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return 0, errStat
	}
	fields := bytes.Fields(b[end+1:])
	if len(fields) < 13 {
		return 0, errStat
	}
	var total time.Duration
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, errStat
		}
		total += time.Duration(n) * clockTick
	}
	return total, nil
}

// memory is a process's resident memory in bytes.
type memory struct{ now, peak int64 }

func processMemory(pid int) (memory, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, fmt.Errorf("read memory: %w", err)
	}
	return parseStatus(b)
}

func parseStatus(b []byte) (m memory, err error) {
	for line := range bytes.Lines(b) {
		name, rest, _ := bytes.Cut(line, []byte(":"))
		var to *int64
		switch string(name) {
		case "VmRSS":
			to = &m.now
		case "VmHWM":
			to = &m.peak
		default:
			continue
		}
		fields := bytes.Fields(rest)
		if len(fields) != 2 || string(fields[1]) != "kB" {
			return memory{}, fmt.Errorf("read memory: unexpected line %q", line)
		}
		kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
		if err != nil {
			return memory{}, fmt.Errorf("read memory: unexpected line %q", line)
		}
		*to = kib << 10
	}
	if m.now == 0 || m.peak == 0 {
		return memory{}, errors.New("read memory: /proc/PID/status names no VmRSS or VmHWM")
	}
	return m, nil
}
