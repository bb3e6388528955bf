package cli

import (
	"encoding/json"
	"time"
)

// The shapes of the REST API, as far as the commands read them. Members that a
// newer front door adds are passed over.

type serverList struct {
	Servers []serverItem `json:"servers"`
}

type serverItem struct {
	ID          string         `json:"id"`
	State       string         `json:"initialization_state"`
	PID         int            `json:"pid"`
	RiskLevel   int            `json:"risk_level"`
	Risk        string         `json:"risk_description"`
	Transport   string         `json:"transport"`
	Tools       *int           `json:"tools"`
	WorkerCount int            `json:"worker_count"`
	Workers     []serverWorker `json:"workers"`
	Slots       int            `json:"slots"`
	InFlight    int            `json:"in_flight"`
	Waiting     int            `json:"waiting"`
	Title       string         `json:"title"`
	Version     string         `json:"version"`
	Protocol    string         `json:"protocol_version"`
	Error       string         `json:"error"`
	StderrTail  string         `json:"stderr_tail"`
}

type serverWorker struct {
	ID       string `json:"id"`
	State    string `json:"initialization_state"`
	PID      int    `json:"pid"`
	Slots    int    `json:"slots"`
	Sessions int    `json:"sessions"`
	Restarts int    `json:"restarts"`
	Draining bool   `json:"draining"`
	Error    string `json:"error"`
}

type workerList struct {
	Workers []workerItem `json:"workers"`
}

type workerItem struct {
	ID       string            `json:"id"`
	Version  string            `json:"version"`
	Host     string            `json:"host"`
	PID      int               `json:"pid"`
	Labels   map[string]string `json:"labels"`
	Draining bool              `json:"draining"`
	InFlight int               `json:"in_flight"`
	Started  time.Time         `json:"started"`
	Servers  []struct {
		State string `json:"initialization_state"`
	} `json:"servers"`
}

// fleet is the data of a fleet event.
type fleet struct {
	At      time.Time    `json:"at"`
	Servers []serverItem `json:"servers"`
	Workers []workerItem `json:"workers"`
}

type toolPage struct {
	Tools   []json.RawMessage `json:"tools"`
	Next    string            `json:"next_cursor"`
	Unknown []string          `json:"unknown"`
}

type toolItem struct {
	Server     string          `json:"server"`
	Name       string          `json:"name"`
	Enabled    bool            `json:"enabled"`
	Reason     string          `json:"reason"`
	Definition json.RawMessage `json:"definition"`
	raw        json.RawMessage // the whole item
	def        toolDefinition
}

// toolDefinition is what the commands show of an MCP tool.
type toolDefinition struct {
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema"`
	Output      json.RawMessage `json:"outputSchema"`
	Annotations struct {
		Title       string `json:"title"`
		ReadOnly    *bool  `json:"readOnlyHint"`
		Destructive *bool  `json:"destructiveHint"`
		Idempotent  *bool  `json:"idempotentHint"`
		OpenWorld   *bool  `json:"openWorldHint"`
	} `json:"annotations"`
}
