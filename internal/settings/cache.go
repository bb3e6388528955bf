package settings

import "github.com/callyard/callyard/internal/config"

// Cache is the section cache of the configuration. The policy decides which results are cached.
type Cache struct {
	// MemoryBytes limits the memory for results in a front door without Redis.
	MemoryBytes config.Size `yaml:"memory_bytes"`
	// EntryBytes limits the size of one cached result.
	EntryBytes config.Size `yaml:"entry_bytes"`
}

// CacheDefaults returns the default configuration of the cache.
func CacheDefaults() Cache { return Cache{MemoryBytes: 64 << 20, EntryBytes: 256 << 10} }

// Validate returns the settings that are invalid; see package config.
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
