package bench

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine describes a machine well enough to interpret its figures. It does not contain the
// host name.
type Machine struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
	CPU  string `json:"cpu,omitempty"`
	Go   string `json:"go"`
}

func thisMachine() Machine {
	m := Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()}
	// Only Linux has this file; on other systems the model is unknown.
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.CPU = cpuModel(string(text))
	}
	return m
}

func cpuModel(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// String returns one line for titles.
func (m Machine) String() string {
	s := fmt.Sprintf("%d CPUs, %s/%s, %s", m.CPUs, m.OS, m.Arch, m.Go)
	if m.CPU != "" {
		s = m.CPU + ", " + s
	}
	return s
}
