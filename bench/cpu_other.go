//go:build !linux

package bench

import "time"

// On other systems there is no cheap way to read the CPU time of other processes, and
// half of a comparison is worse than none.

func processCPU(int) (time.Duration, bool) { return 0, false }
func ownCPU() (time.Duration, bool)        { return 0, false }
func descendants([]int) []int              { return nil }
func peakMemory(int) (int64, bool)         { return 0, false }
func residentMemory(int) (int64, bool)     { return 0, false }
