// Package settings defines the configuration file: its sections, their defaults, and the checks
// that need no code of a role.
//
// One file can serve every process, so each process knows every section. A section is plain data
// with a method Validate (see package config) and imports nothing from the role that reads it.
// Checks that only a role can do, such as whether a text is a valid secret, are in the package of
// the role (frontdoor.Check, approver.Check, confirm.CheckRedis).
package settings

import (
	"io"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/telemetry"
)

// File is the whole configuration file. Each process reads the sections that it needs.
type File struct {
	// Data is the data folder of `callyard up`. Policy is the policy file; without one, only the
	// riskLevel of servers counts.
	Data   string `yaml:"data"`
	Policy string `yaml:"policy"`
	// Region is the region of this process. A worker has it as its label "region", and front doors
	// prefer workers of their own region.
	Region   string                `yaml:"region"`
	Log      Log                   `yaml:"log"`
	Traces   telemetry.TraceConfig `yaml:"traces"`
	NATS     NATS                  `yaml:"nats"`
	Redis    Redis                 `yaml:"redis"`
	Warrants Warrants              `yaml:"warrants"`
	Webhooks Webhooks              `yaml:"webhooks"`
	// Tenants have separate views and limits.
	Tenants Tenants `yaml:"tenants"`
	// Credentials are the credentials of people at MCP servers.
	Credentials Credentials `yaml:"credentials"`
	// Encryption applies to stored call data.
	Encryption Encryption `yaml:"encryption"`
	Limits     Limits     `yaml:"limits"`
	Cache      Cache      `yaml:"cache"`
	FrontDoor  FrontDoor  `yaml:"front_door"`
	Approver   Approver   `yaml:"approver"`
	Worker     Worker     `yaml:"worker"`
}

// Defaults returns the default configuration of every section.
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

// Validate returns the settings that are invalid; see package config.
func (l Log) Validate() []config.Fault {
	if _, err := telemetry.NewLogger(io.Discard, l.Level, "json"); err != nil {
		return []config.Fault{config.Faultf("level", "%v.", err)}
	}
	if _, err := telemetry.NewLogger(io.Discard, l.Level, l.Format); err != nil {
		return []config.Fault{config.Faultf("format", "%v.", err)}
	}
	return nil
}

// Warrants is the section warrants: the key with which this process signs that an approved call
// may run, and the signatures that a worker trusts.
type Warrants struct {
	// KeyFile is the private key with which a front door signs confirmations of callers, and an
	// approver the decisions of people. Each process has its own key.
	KeyFile string `yaml:"key_file"`
	// PeopleKeys, CallerKeys and StandingKeys are files of public keys that a worker trusts for
	// approvals of people, confirmations of callers, and standing permissions.
	PeopleKeys   []string `yaml:"people_keys"`
	CallerKeys   []string `yaml:"caller_keys"`
	StandingKeys []string `yaml:"standing_keys"`
}
