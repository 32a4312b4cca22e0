//go:build unix

package main

// Examples that --help shows below a subcommand's flags.

// Help shows how models are compiled.
func (compileCmd) Help() string {
	return `Examples:

  iflowc compile demo -o demo                                  a library model with weights in iflowc itself
  iflowc compile Llama-3.2-1B/ --quant q4 -o llama             a Hugging Face folder, 4-bit weights
  iflowc compile model.gguf --embed-weights -o model           a GGUF file, into a single file
  iflowc compile model.yaml --target cuda -o model             CPU and GPU code
  iflowc compile model.yaml --emit lib -o libmodel.so          a shared library with a C header
  GOARCH=arm64 iflowc compile demo --cc aarch64-linux-gnu-gcc  for another machine`
}

// Help shows ways to look at the IR.
func (irCmd) Help() string {
	return `Examples:

  iflowc ir demo                              as lowered from the model spec
  iflowc ir demo --after fuse-regions         after a pass
  iflowc ir demo --diff --quant q4_b64        what each pass changes
  iflowc ir demo --all stages/                all stages, as input for iflowc opt`
}

// Help shows how passes run on text.
func (optCmd) Help() string {
	return `Examples:

  iflowc ir demo | iflowc opt /dev/stdin --passes merge-projections,fuse-regions
  iflowc opt stages/00-lower.ir --quant q4_b64`
}

// Help shows checks before a compile.
func (checkCmd) Help() string {
	return `Examples:

  iflowc check Llama-3.2-1B/ --quant q4_b64 --context 8192
  iflowc check model.yaml --devices '0&1'     the memory of each device`
}

// Help shows how a model spec is derived.
func (importCmd) Help() string {
	return `Examples:

  iflowc import Llama-3.2-1B/ -o llama.yaml   the spec that compile derives, to read or change
  iflowc import model.gguf -o model.yaml`
}

// Help shows what can be explained.
func (explainCmd) Help() string {
	return `Examples:

  iflowc explain demo --quant q8
  iflowc explain demo --profile demo.profile  with measured times
  iflowc explain llama/ --devices auto:8xh100 why it is partitioned like this
  iflowc explain llama/ --devices auto:2xhost,25Gbit,50us
                                              the same for two machines like this one, and which rank runs where`
}

// Help shows a comparison; tools/gen/reference makes such dumps.
func (diffCmd) Help() string {
	return `Example:

  iflowc diff model.yaml --ref dump.npz       names the first op whose values differ from the reference`
}

// Help shows how a trace gets into the report.
func (viewCmd) Help() string {
	return `Examples:

  iflowc view demo                            serves the report on this machine
  iflowc view demo -o demo.html               writes it to a file
  iflowc view demo --devices '0&1'            tensor parallel: shards and communication
  ./demo generate -p "Once" --trace t.json && iflowc view demo --trace t.json`
}

// Help shows the usual measurement.
func (profileCmd) Help() string {
	return `Examples:

  iflowc profile model.yaml -o model.profile --plot times.png
  iflowc compile model.yaml --profile model.profile`
}
