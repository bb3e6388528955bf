package fabric

import "maps"

// Servers are the entries of mcpServers of a servers file, by the names of the servers:
// what one would write in JSON.
type Servers = map[string]map[string]any

// Options say what runs. The zero value is a fabric with one of each part, the demo
// server, and the policy of deploy/examples.
type Options struct {
	// FrontDoors, Workers and Approvers are how many run; 0 is one of each, and fewer than
	// none no worker: AddWorker brings them.
	FrontDoors, Workers, Approvers int

	// Cluster runs deploy/compose.cluster.yaml in place of deploy/compose.yaml: three
	// nodes of NATS, Redis with a replica, three Sentinels.
	Cluster bool

	// Worker is what each of the Workers is like.
	Worker Worker

	// Policy is the text of the policy file that front doors and workers read. There is
	// one person to ask, with [Fabric.PersonKey], in the group "ops", and one caller, with
	// [Fabric.Key], in "agents".
	Policy string

	// FrontDoor and Approver are what each of those is like.
	FrontDoor, Approver Part

	// Images are used as they are; those that are missing are built of Source.
	Images Images

	// Source is the folder with the source of Callyard; empty: what [Source] finds.
	Source string
}

// Part says what a front door or an approver is like, in addition to what the compose file says.
type Part struct {
	// Env is added to its variables; docs/reference/configuration.md names them.
	Env map[string]string

	// Mounts are as those of a Worker.
	Mounts []string

	// Hosts are names that it knows, as "NAME:ADDRESS"; the address "host-gateway" is that
	// of this machine.
	Hosts []string
}

func (p Part) service(like Service) Service {
	s := like.clone()
	s.Environment = with(s.Environment, p.Env)
	s.Volumes, s.ExtraHosts = append(s.Volumes, p.Mounts...), append(s.ExtraHosts, p.Hosts...)
	return s
}

// Worker says what a worker is like.
type Worker struct {
	// Servers is what it holds; nil is the server "demo" with the demo tools. Programs are
	// those of its image.
	Servers Servers

	// Image is another one than that of the workers. Its entry point is the worker.
	Image string

	// Env is added to its variables.
	Env map[string]string

	// Mounts are folders and files of this machine, as "SOURCE:TARGET" or
	// "SOURCE:TARGET:ro", with absolute paths. A worker is user 65532.
	Mounts []string

	// Engine gives the worker the engine of this machine, for calls of high risk. It makes
	// the worker root on this machine, as it does everywhere.
	Engine bool
}

func demo() Servers {
	return Servers{"demo": {"command": "/demo", "safeTools": []string{"echo", "add"}}}
}

// with returns the variables with others added.
func with(env, more map[string]string) map[string]string {
	all := maps.Clone(env)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, more)
	return all
}
