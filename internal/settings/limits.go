package settings

import (
	"fmt"
	"strings"

	"github.com/callyard/callyard/internal/config"
)

// Limits is the section limits of the configuration. In both lists the first rule
// that matches counts, alone; who matches none has no limit. Each principal, and
// each server, has the limits of its rule for itself.
type Limits struct {
	Principals []PrincipalRule `yaml:"principals"`
	Servers    []ServerRule    `yaml:"servers"`
}

// PrincipalRule limits principals. 0 sets no limit; a rule without any frees whom
// it names from those below it.
type PrincipalRule struct {
	// Names and Groups are patterns ("*" any characters, "?" one); a rule with
	// both wants both, one with neither is for everybody.
	Names  []string `yaml:"names"`
	Groups []string `yaml:"groups"`
	// Rate is calls a second, Burst the number of them that may come at once (a second's
	// worth).
	Rate  float64 `yaml:"rate"`
	Burst int     `yaml:"burst"`
	// InFlight is calls under way at once, those that wait for a worker included.
	InFlight int `yaml:"in_flight"`
	// Queued is durable and held calls and lines of batches that have not ended, Batches
	// the batches that have not.
	Queued  int `yaml:"queued"`
	Batches int `yaml:"batches"`
}

// ServerRule limits what all callers together ask of servers. 0 sets no limit.
type ServerRule struct {
	// Servers are patterns of server ids; none: every server.
	Servers  []string `yaml:"servers"`
	Rate     float64  `yaml:"rate"`
	Burst    int      `yaml:"burst"`
	InFlight int      `yaml:"in_flight"`
}

// Bounds of what can be asked for, so that no arithmetic overflows.
const (
	mostRate  = 1e6
	leastRate = 1.0 / (24 * 3600)
	mostCount = 1_000_000_000
)

// Validate returns the faults in the rule; see package config.
func (r PrincipalRule) Validate() []config.Fault {
	faults := append(patterns("names", r.Names), patterns("groups", r.Groups)...)
	return append(faults, numbers(r.Rate, r.Burst, map[string]int{"in_flight": r.InFlight, "queued": r.Queued, "batches": r.Batches})...)
}

// Validate returns the faults in the rule; see package config.
func (r ServerRule) Validate() []config.Fault {
	return append(patterns("servers", r.Servers), numbers(r.Rate, r.Burst, map[string]int{"in_flight": r.InFlight})...)
}

func patterns(key string, list []string) (faults config.Collector) {
	for i, p := range list {
		if p == "" || strings.TrimSpace(p) != p || strings.ContainsAny(p, `[]{}\`) {
			faults.Addf(fmt.Sprintf("%s[%d]", key, i), "is not a pattern: write a name, with * for any characters and ? for one character; for alternatives write a list.")
		}
	}
	return faults
}

func numbers(rate float64, burst int, counts map[string]int) (faults config.Collector) {
	if rate != 0 && (rate < leastRate || rate > mostRate) {
		faults.Addf("rate", "must be a number of calls per second, from one per day (0.0000116) to %d; omit it for no limit.", int(mostRate))
	}
	if burst < 0 || burst > mostCount {
		faults.Addf("burst", "must be from 1 to %d; omit it for the calls of one second.", mostCount)
	}
	if burst > 0 && rate == 0 {
		faults.Addf("burst", "is the burst size of a rate, and there is no rate; add rate, or remove burst.")
	}
	for _, key := range []string{"in_flight", "queued", "batches"} {
		if n := counts[key]; n < 0 || n > mostCount {
			faults.Addf(key, "must be from 1 to %d; omit it for no limit.", mostCount)
		}
	}
	return faults
}
