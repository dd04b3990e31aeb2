package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// holder names the process that listens on a TCP port of an address, as " by nginx (pid 4711)". It returns "" if the
// system does not show it, as for processes of other users.
func holder(ip net.IP, port int) string {
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		raw, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			// sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode (proc(5))
			f := strings.Fields(line)
			const listening = "0A"
			if len(f) < 10 || f[3] != listening {
				continue
			}
			address, hexPort, _ := strings.Cut(f[1], ":")
			if p, err := strconv.ParseUint(hexPort, 16, 16); err != nil || int(p) != port {
				continue
			}
			everywhere := strings.Trim(address, "0") == ""
			if everywhere || ip == nil || ip.IsUnspecified() || address == procAddress(ip) {
				inodes["socket:["+f[9]+"]"] = true
			}
		}
	}
	if len(inodes) == 0 {
		return ""
	}
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && inodes[target] {
			pid := strings.Split(fd, "/")[2]
			name, _ := os.ReadFile("/proc/" + pid + "/comm")
			return fmt.Sprintf(" by %s (pid %s)", strings.TrimSpace(string(name)), pid)
		}
	}
	return ""
}

// procAddress returns an address as proc(5) writes it: hexadecimal, each group of four bytes in the machine's order,
// which is little-endian on every platform that fingerpost is built for.
func procAddress(ip net.IP) string {
	raw := ip.To4()
	if raw == nil {
		raw = ip.To16()
	}
	var b strings.Builder
	for i := 0; i+4 <= len(raw); i += 4 {
		fmt.Fprintf(&b, "%02X%02X%02X%02X", raw[i+3], raw[i+2], raw[i+1], raw[i])
	}
	return b.String()
}
