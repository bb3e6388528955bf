package settings

import "github.com/callyard/callyard/internal/config"

// Cache is the section cache of the configuration. Whether anything is kept at
// all says the policy.
type Cache struct {
	// MemoryBytes is what results may take in the memory of a front door, where
	// there is no Redis.
	MemoryBytes config.Size `yaml:"memory_bytes"`
	// EntryBytes is the largest result that is kept.
	EntryBytes config.Size `yaml:"entry_bytes"`
}

// CacheDefaults returns the configuration of a cache that was told nothing.
func CacheDefaults() Cache { return Cache{MemoryBytes: 64 << 20, EntryBytes: 256 << 10} }

// Validate returns the settings that cannot be honoured; see package config.
func (c Cache) Validate() []config.Fault {
	var faults config.Collector
	if c.EntryBytes <= 0 || c.EntryBytes > 16<<20 {
		faults.Addf("entry_bytes", "must be from 1B to 16MiB; omit it for the default.")
	}
	if c.MemoryBytes < c.EntryBytes {
		faults.Addf("memory_bytes", "is smaller than the maximum size of one result (cache.entry_bytes); increase it.")
	}
	return faults
}
