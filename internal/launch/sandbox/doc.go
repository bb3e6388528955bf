// Package sandbox runs MCP servers in hardened containers, one container for one use. It is the only
// package that talks to a container engine.
//
// # Guarantees
//
//   - [Resolve] turns the operator's settings into a [Spec], and nothing else can create one. A setting
//     that would widen the sandbox is refused with a sentence that names the key and the fix, unless
//     the operator allows exactly that setting by name. [Spec.InState] adds a directory that was
//     created for one container, and nothing else.
//   - [Engine.Pin] looks up an image once. After that it is run by its id. It is never pulled.
//   - [Engine.Start] returns the same pipes as a child process; see [Container]. The container's
//     stderr is always read.
//   - A container is used once: [Pool] hands it to one caller and destroys it afterwards. It is handed
//     out only after the handshake succeeded.
//   - A container outlives neither its time limit nor its worker. Its stdin closes with the connection,
//     so that well-behaved servers end by themselves. The reaper of package launch removes the others
//     ([Sweep]), and so does the [Janitor] of any worker that shares the engine.
//   - A container has no network but loopback. If its Spec lists allowed destinations, a forwarder in
//     another container shares that loopback and forwards connections to the proxy of package egress in
//     this process. The forwarder ends with its sandbox.
//   - No network, volume or container is left behind.
//
// # Limits
//
// It never runs a server outside a container: if there is no engine, no image, or an engine that cannot
// enforce a limit, it returns an error. It does not build or pull images, offers no shell or terminal,
// and does not run the docker command.
//
// It does not protect against a kernel vulnerability. If that matters, use the runtime runsc (gVisor),
// which adds a second kernel.
//
// It is one package because the description, the start, the pool and the end of a
// container have to agree on one [Spec]: nothing outside can make or change one.
package sandbox
