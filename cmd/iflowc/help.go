package main

// Examples that --help shows below a subcommand's flags.

// Help shows how models are compiled.
func (compileCmd) Help() string {
	return `Examples:

  iflowc compile demo -o demo                                  a model of the library, with its weights embedded in iflowc
  iflowc compile Llama-3.2-1B/ --quant q4_b64 -o llama         a Hugging Face folder, in 4.5 bits
  iflowc compile model.gguf --embed-weights -o model           a GGUF file, into one file that holds everything
  iflowc compile model.yaml --target cuda -o model             with code for GPUs beside the processor's
  iflowc compile model.yaml --emit lib -o libmodel.so          a shared library with a C header
  GOARCH=arm64 iflowc compile demo --cc aarch64-linux-gnu-gcc  for another machine`
}

// Help shows ways to look at the IR.
func (irCmd) Help() string {
	return `Examples:

  iflowc ir demo                              as the specification describes it
  iflowc ir demo --after fuse-regions         after a pass
  iflowc ir demo --diff --quant q4_b64        what each pass changes
  iflowc ir demo --all stages/                every stage, each valid input of iflowc opt`
}

// Help shows how passes run on text.
func (optCmd) Help() string {
	return `Examples:

  iflowc ir demo | iflowc opt /dev/stdin --passes merge-projections,fuse-regions
  iflowc opt stages/00-lower.ir --quant q4_b64`
}

// Help shows what may be asked before a compile.
func (checkCmd) Help() string {
	return `Examples:

  iflowc check Llama-3.2-1B/ --quant q4_b64 --context 8192
  iflowc check model.yaml --devices '0&1'     the memory of each device`
}

// Help shows where a specification comes from.
func (importCmd) Help() string {
	return `Examples:

  iflowc import Llama-3.2-1B/ -o llama.yaml   what compile derives by itself, to be read or changed
  iflowc import model.gguf -o model.yaml`
}

// Help shows whose choices are explained.
func (explainCmd) Help() string {
	return `Examples:

  iflowc explain demo --quant q8
  iflowc explain demo --profile demo.profile  with the measured times
  iflowc explain llama/ --devices auto:8xh100   and why it is spread so over another machine`
}

// Help shows a comparison; tools/gen/reference makes such dumps.
func (diffCmd) Help() string {
	return `Example:

  iflowc diff model.yaml --ref dump.npz       names the first op whose values leave the reference`
}

// Help shows how a trace gets into the page.
func (viewCmd) Help() string {
	return `Examples:

  iflowc view demo                            serves the page on this machine
  iflowc view demo -o demo.html               writes it to one file
  iflowc view demo --devices '0&1'            on several devices: shards, and the bytes that they exchange
  ./demo generate -p "Once" --trace t.json && iflowc view demo --trace t.json`
}

// Help shows the usual measurement.
func (profileCmd) Help() string {
	return `Examples:

  iflowc profile model.yaml -o model.profile --plot times.png
  iflowc compile model.yaml --profile model.profile`
}
