package settings

import (
	"fmt"
	"strings"

	"github.com/callyard/callyard/internal/config"
)

// Limits is the section limits of the configuration. In both lists only the first matching rule
// applies. A principal or server without a matching rule has no limit. Each principal and each
// server has the limits of its rule separately.
type Limits struct {
	Principals []PrincipalRule `yaml:"principals"`
	Servers    []ServerRule    `yaml:"servers"`
}

// PrincipalRule limits principals. 0 means no limit. A rule without limits exempts the principals
// that it matches from later rules.
type PrincipalRule struct {
	// Names and Groups are patterns ("*" any characters, "?" one). A rule with both requires both. A
	// rule with neither matches every principal.
	Names  []string `yaml:"names"`
	Groups []string `yaml:"groups"`
	// Rate is calls per second. Burst is the number of calls that may arrive at once; by default the
	// calls of one second.
	Rate  float64 `yaml:"rate"`
	Burst int     `yaml:"burst"`
	// InFlight limits concurrent calls, including those that wait for a worker.
	InFlight int `yaml:"in_flight"`
	// Queued limits unfinished durable calls, held calls and lines of batches. Batches limits
	// unfinished batches.
	Queued  int `yaml:"queued"`
	Batches int `yaml:"batches"`
}

// ServerRule limits the calls of all principals together to a server. 0 means no limit.
type ServerRule struct {
	// Servers are patterns of server ids. If empty, the rule matches every server.
	Servers  []string `yaml:"servers"`
	Rate     float64  `yaml:"rate"`
	Burst    int      `yaml:"burst"`
	InFlight int      `yaml:"in_flight"`
}

// Upper limits of settings, so that no arithmetic overflows.
const (
	mostRate  = 1e6
	leastRate = 1.0 / (24 * 3600)
	mostCount = 1_000_000_000
)

// Validate returns the faults of the rule; see package config.
func (r PrincipalRule) Validate() []config.Fault {
	faults := append(patterns("names", r.Names), patterns("groups", r.Groups)...)
	return append(faults, numbers(r.Rate, r.Burst, map[string]int{"in_flight": r.InFlight, "queued": r.Queued, "batches": r.Batches})...)
}

// Validate returns the faults of the rule; see package config.
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
