package scope

import "fmt"

// Limits limit the calls of one key, in addition to the limits of the configuration. The stricter
// applies. 0 means no limit.
type Limits struct {
	// Rate is calls per second. Burst is the number of calls that may arrive at once; by default
	// the calls of one second.
	Rate  float64 `yaml:"rate" json:"rate,omitempty" minimum:"0" maximum:"1000000" doc:"The maximum number of calls per second; absent: no limit." example:"5"`
	Burst int     `yaml:"burst" json:"burst,omitempty" minimum:"0" maximum:"1000000000" doc:"The number of calls that may arrive at once; absent: the calls of one second at this rate."`
	// InFlight limits concurrent calls.
	InFlight int `yaml:"in_flight" json:"in_flight,omitempty" minimum:"0" maximum:"1000000000" doc:"The maximum number of concurrent calls; absent: no limit." example:"10"`
}

// Maximum values.
const (
	mostRate  = 1e6
	leastRate = 1.0 / (24 * 3600)
	mostCount = 1_000_000_000
)

// Check returns the fault of the limits, or nil.
func (l Limits) Check() error {
	switch {
	case l.Rate != 0 && !(l.Rate >= leastRate && l.Rate <= mostRate):
		return fmt.Errorf("must have a rate from one call per day (0.0000116) to %d per second", int(mostRate))
	case min(l.Burst, l.InFlight) < 0 || max(l.Burst, l.InFlight) > mostCount:
		return fmt.Errorf("must have counts from 1 to %d", mostCount)
	case l.Burst > 0 && l.Rate == 0:
		return fmt.Errorf("have a burst without a rate")
	}
	return nil
}

// None reports whether there are no limits.
func (l Limits) None() bool { return l == Limits{} }

// Within reports whether the limits are at least as strict as other.
func (l Limits) Within(other Limits) bool {
	within := func(a, b float64) bool { return b == 0 || a > 0 && a <= b }
	return within(l.Rate, other.Rate) && within(float64(l.InFlight), float64(other.InFlight)) && (other.Burst == 0 || l.Burst > 0 && l.Burst <= other.Burst)
}
