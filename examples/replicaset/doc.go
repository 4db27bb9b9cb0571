// Command replicaset keeps as many processes running as a folder of manifests
// declares.
//
//	go run ./examples/replicaset                   # the manifests beside the example
//	go run ./examples/replicaset -dir my-folder
//	go run ./examples/replicaset -until-converged  # ends once all is as declared
//
// A manifest is a ReplicaSet, in YAML or JSON, one or more a file:
//
//	kind: ReplicaSet
//	name: web
//	replicas: 3
//	selector: {app: web}
//	template:
//	  labels: {app: web}
//	  command: [sleep]
//	  args: ["1000"]
//	  env: {COLOUR: blue}
//	  gracePeriod: 2s
//
// Edit a file, and the processes follow within a second; delete it, and they end. (A
// changed template is for new Pods only.) While a file cannot be read or understood,
// what it said last remains in force, and the error names the file and the line.
//
// What the processes write is discarded; -logs folder keeps it, a file a Pod. On a
// terminal the program shows a table, elsewhere (and with -plain) a line for each
// transition.
//
// Four parts do this, and know each other only through backends:
//
//  1. the source, which lists and watches the folder (backend/file);
//  2. the ReplicaSet controller (scale.go), which creates, adopts, releases and
//     deletes Pods;
//  3. the node agent (examples/internal/node), which makes a process of each Pod;
//  4. the status printer (printer.go).
//
// The Pods are objects in a backend/memory. Nothing that was started outlives the
// program, however it ends (examples/internal/proc says how).
package main
