// Package settings is the configuration file: its sections, their defaults, and what
// can be said against a value without the code that goes by it.
//
// One file can serve every process, so each of them knows every section. A section is
// plain data with a method Validate (see package config), and brings nothing of the
// role that it is for. What only a role can tell, such as whether a secret is one, its
// own package checks (frontdoor.Check, approver.Check, confirm.CheckRedis).
package settings

import (
	"io"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/telemetry"
)

// File is the whole configuration file. Each process goes by the sections that it
// needs.
type File struct {
	// Data is where `callyard up` keeps what must last. Policy is the policy file;
	// without one only the riskLevel of servers counts.
	Data   string `yaml:"data"`
	Policy string `yaml:"policy"`
	// Region is where this process runs. A worker carries it as its label "region", and
	// front doors of the same region send their calls there first.
	Region   string                `yaml:"region"`
	Log      Log                   `yaml:"log"`
	Traces   telemetry.TraceConfig `yaml:"traces"`
	NATS     NATS                  `yaml:"nats"`
	Redis    Redis                 `yaml:"redis"`
	Warrants Warrants              `yaml:"warrants"`
	Webhooks Webhooks              `yaml:"webhooks"`
	// Tenants are kept apart by what each of them sees and is limited to.
	Tenants Tenants `yaml:"tenants"`
	// Credentials are those of people at MCP servers.
	Credentials Credentials `yaml:"credentials"`
	// Encryption is of what is stored of calls.
	Encryption Encryption `yaml:"encryption"`
	Limits     Limits     `yaml:"limits"`
	Cache      Cache      `yaml:"cache"`
	FrontDoor  FrontDoor  `yaml:"front_door"`
	Approver   Approver   `yaml:"approver"`
	Worker     Worker     `yaml:"worker"`
}

// Defaults returns the configuration of a command that was told nothing.
func Defaults() File {
	return File{
		Data: "callyard-data", Log: Log{Level: "info", Format: "auto"}, Traces: telemetry.TraceDefaults(),
		NATS: NATS{URL: "nats://127.0.0.1:4222", Replicas: 1}, Cache: CacheDefaults(), FrontDoor: FrontDoorDefaults(), Approver: ApproverDefaults(), Worker: WorkerDefaults(),
	}
}

// Log is the section log.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn, error
	Format string `yaml:"format"` // auto, text, json
}

// Validate returns the settings that cannot be honoured; see package config.
func (l Log) Validate() []config.Fault {
	if _, err := telemetry.NewLogger(io.Discard, l.Level, "json"); err != nil {
		return []config.Fault{config.Faultf("level", "%v.", err)}
	}
	if _, err := telemetry.NewLogger(io.Discard, l.Level, l.Format); err != nil {
		return []config.Fault{config.Faultf("format", "%v.", err)}
	}
	return nil
}

// Warrants is the section warrants: with which key this process signs that an
// approved call may run, and whose signatures count at a worker.
type Warrants struct {
	// KeyFile is the private key with which a front door signs what callers
	// confirm, and an approver what people decide. Each has its own.
	KeyFile string `yaml:"key_file"`
	// PeopleKeys, CallerKeys and StandingKeys are files of public keys that a worker
	// trusts: to say that people approved, that the caller itself did, and that somebody
	// had approved calls like this one before.
	PeopleKeys   []string `yaml:"people_keys"`
	CallerKeys   []string `yaml:"caller_keys"`
	StandingKeys []string `yaml:"standing_keys"`
}
