package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/callyard/callyard/internal/config"
)

// durationValue is a flag with a duration in the format of configuration files, which allows days.
type durationValue time.Duration

// durationVar defines a flag for a non-negative duration.
func durationVar(f *pflag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	f.Var((*durationValue)(d), name, usage)
}

// Set implements [pflag.Value].
func (d *durationValue) Set(text string) error {
	return (*config.Duration)(d).UnmarshalText([]byte(text))
}

// String implements [pflag.Value].
func (d *durationValue) String() string { return config.Duration(*d).String() }

// Type implements [pflag.Value].
func (d *durationValue) Type() string { return "duration" }
