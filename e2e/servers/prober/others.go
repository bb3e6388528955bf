//go:build linux

package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// others are the tools that are not attempts.
var others = map[string]func(args map[string]string) string{
	"fetch":   fetch,
	"connect": connect,
	"resolve": resolve,
	"echo":    func(args map[string]string) string { return args["text"] },
	"env": func(map[string]string) string {
		list := os.Environ()
		slices.Sort(list)
		return strings.Join(list, "\n")
	},
	"hang": func(map[string]string) string { time.Sleep(time.Hour); return "" },
	"memory-bomb": func(map[string]string) string {
		var held [][]byte
		for {
			block := make([]byte, 8<<20)
			for i := range block {
				block[i] = byte(i)
			}
			held = append(held, block)
			if len(held) > 1000 { // 8 GB: no limit applies
				return "through"
			}
		}
	},
	"processes-bomb": func(map[string]string) string {
		for { // until the process is killed
			_ = exec.Command("/proc/self/exe", "sleep").Start()
		}
	},
	// cpu-bomb uses two threads for a second and returns the CPU time it got.
	"cpu-bomb": func(map[string]string) string {
		end := time.Now().Add(2 * time.Second)
		done := make(chan struct{})
		for range 2 {
			go func() {
				for time.Now().Before(end) {
				}
				done <- struct{}{}
			}()
		}
		<-done
		<-done
		var used syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
			return err.Error()
		}
		return (time.Duration(used.Utime.Nano()) + time.Duration(used.Stime.Nano())).String()
	},
	// leave writes a file, and returns its previous content.
	"leave": func(map[string]string) string {
		_, err := os.Stat("/tmp/left")
		_ = os.WriteFile("/tmp/left", []byte("left"), 0o600) //nolint:gosec // the probe wants what any program may do there
		if err == nil {
			return "found"
		}
		return "clean"
	},
}
