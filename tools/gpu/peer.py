"""Measures PyTorch on the GPU: F.linear on random f16 data in a CUDA graph, and memory bandwidth. Prints lines of JSON.

  peer.py N,K[;N,K…] ROWS[,ROWS…]

Each call of a graph reads weights that are not in the L2 cache, and has no gaps between launches."""
import json
import statistics
import sys

COLD = 512 << 20  # bytes of weights per graph: ten times the largest L2 cache
LARGE = 1 << 30  # bytes of the arrays that measure bandwidth


def say(**record):
    print(json.dumps(record), flush=True)


def captured(torch, work):
    """A CUDA graph of some work, which has run before."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def microseconds(torch, graph, calls):
    """The median time of one of a graph's calls, over ten replays."""
    times = []
    for i in range(13):
        a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        a.record()
        graph.replay()
        b.record()
        b.synchronize()
        times.append(1000 * a.elapsed_time(b) / calls)
    return statistics.median(times[3:])


def bandwidth(torch):
    a = torch.randn(LARGE // 4, device="cuda")
    b = torch.empty_like(a)
    say(measure="copy", gb_s=2 * LARGE / 1e3 / microseconds(torch, captured(torch, lambda: b.copy_(a)), 1))
    say(measure="read", gb_s=LARGE / 1e3 / microseconds(torch, captured(torch, lambda: a.sum()), 1))


def linear(torch, n, k, rows):
    copies = max(2, COLD // (2 * n * k))
    w = [torch.randn(n, k, device="cuda").half() / k ** 0.5 for _ in range(copies)]
    x = torch.randn(rows, k, device="cuda").half()

    def work():
        for each in w:
            torch.nn.functional.linear(x, each)

    us = microseconds(torch, captured(torch, work), copies)
    say(measure="linear", n=n, k=k, rows=rows, us=us, gb_s=2 * n * k / 1e3 / us, tflops=2 * n * k * rows / 1e6 / us)


def main():
    shapes = [tuple(map(int, s.split(","))) for s in sys.argv[1].split(";")]
    try:
        import torch
    except ImportError as e:
        say(measure="missing", why="no PyTorch: %s" % e)
        return
    if not torch.cuda.is_available():
        say(measure="missing", why="PyTorch %s has no GPU" % torch.__version__)
        return
    say(measure="torch", version=torch.__version__, cuda=torch.version.cuda, device=torch.cuda.get_device_name())
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    with torch.no_grad():
        bandwidth(torch)
        for rows in map(int, sys.argv[2].split(",")):
            for n, k in shapes:
                linear(torch, n, k, rows)


main()
