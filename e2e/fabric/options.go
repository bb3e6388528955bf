package fabric

import "maps"

// Servers maps the names of servers to their entries in mcpServers of a servers file, in the
// same form as in JSON.
type Servers = map[string]map[string]any

// Options selects the parts of a fabric. The zero value is a fabric with one of each part, the
// demo server, and the policy of deploy/examples.
type Options struct {
	// FrontDoors, Workers and Approvers are the numbers of parts. 0 means one, and a negative
	// number of Workers means none; add them with AddWorker.
	FrontDoors, Workers, Approvers int

	// Cluster runs deploy/compose.cluster.yaml instead of deploy/compose.yaml: three
	// NATS nodes, Redis with a replica, three Sentinels.
	Cluster bool

	// Worker configures each of the Workers.
	Worker Worker

	// Policy is the text of the policy file of front doors and workers. There is
	// one approver, with [Fabric.PersonKey], in the group "ops", and one caller, with
	// [Fabric.Key], in "agents".
	Policy string

	// FrontDoor and Approver configure each of the front doors and approvers.
	FrontDoor, Approver Part

	// Images are existing images. Missing ones are built from Source.
	Images Images

	// Source is the folder with the source of Callyard. If empty, the function [Source] finds it.
	Source string
}

// Part configures a front door or an approver in addition to the compose file.
type Part struct {
	// Env adds environment variables; docs/reference/configuration.md lists them.
	Env map[string]string

	// Mounts are as for a Worker.
	Mounts []string

	// Hosts are additional host names, as "NAME:ADDRESS". The address "host-gateway" is that
	// of this machine.
	Hosts []string
}

func (p Part) service(like Service) Service {
	s := like.clone()
	s.Environment = with(s.Environment, p.Env)
	s.Volumes, s.ExtraHosts = append(s.Volumes, p.Mounts...), append(s.ExtraHosts, p.Hosts...)
	return s
}

// Worker configures a worker.
type Worker struct {
	// Servers are its servers. If nil, it has the server "demo" with the demo tools. Its programs
	// come from the image.
	Servers Servers

	// Image replaces the image of workers. Its entry point must be the worker.
	Image string

	// Env adds environment variables.
	Env map[string]string

	// Mounts are folders and files of this machine, as "SOURCE:TARGET" or
	// "SOURCE:TARGET:ro", with absolute paths. A worker runs as user 65532.
	Mounts []string

	// Engine gives the worker access to the engine of this machine, for calls of high risk. It
	// makes the worker equivalent to root on this machine, as everywhere.
	Engine bool
}

func demo() Servers {
	return Servers{"demo": {"command": "/demo", "safeTools": []string{"echo", "add"}}}
}

// with returns env with more variables.
func with(env, more map[string]string) map[string]string {
	all := maps.Clone(env)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, more)
	return all
}
