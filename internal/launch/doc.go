// Package launch starts the processes of stdio servers ([Launcher.Start]) and makes HTTP clients for
// remote servers ([HTTPClient]). It knows nothing about MCP; package session handles the content of
// pipes and requests.
//
// # Guarantees
//
//   - A child sees only the environment variables of [Spec.Env], a short list of harmless ones,
//     and one marker of this package, never those of the worker.
//   - No shell is involved, whatever the command and its arguments contain.
//   - A child's descendants do not outlive it, and no child outlives its worker, even if they moved
//     to another session, and even if the worker is killed with SIGKILL. See [Launcher].
//   - A child's stderr is always read, so that the child never blocks on it, and its end is kept.
//   - Headers of a remote server, which mostly are credentials, go only to that server.
//
// # Limits
//
// The package is not a sandbox. A program that wants to escape can clear its environment and leave
// its process tree and process group; untrusted code belongs in a container. Operators own the
// servers file, so variables such as LD_PRELOAD or NODE_OPTIONS in [Spec.Env] are passed on
// unchanged.
//
// # Requirements
//
// The reaper is the same program, started again. Every main, and the TestMain of every package that
// creates a [Launcher], must start with
//
//	if launch.IsReaper() {
//		os.Exit(launch.RunReaper())
//	}
package launch
