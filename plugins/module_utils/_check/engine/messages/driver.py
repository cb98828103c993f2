# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What CUDA, the NVIDIA driver, NVML and the Fabric Manager say, whatever program prints it.

The words of CUDA are those of libcudart 13 and of its error codes, and the same in PyTorch (``CUDA error: ...``) and
NCCL (``Cuda failure 802 '...'``).  Only texts of a driver that is missing, broken or too old end with its repair: the
others are about the program, the card or a setting.  Pure.
"""

from __future__ import annotations

from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine import fixes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages import causes
from ansible_collections.baremetal.gpu_cluster.plugins.module_utils._check.engine.messages.text import (
    READ,
    REPORTED,
    SELF,
    Text,
)

#: Before words that mean something else elsewhere: PyTorch's, NCCL's and the CUDA samples' beginnings.
CUDA = r"(?:CUDA (?:error|failure):? ?(?:\S+ )?'?|Error \d+: )"
DRAIN = "take this node out of the jobs, reset the GPU or reboot, and have the GPU replaced when it comes back"
XIDS = "dmesg -T | grep -iE 'xid|nvrm'"
FABRIC_MANAGER = (
    "install the Fabric Manager of the driver's own release and start it; one that stopped before needs a reset of all "
    "GPUs or a reboot"
)
FABRIC = "systemctl status nvidia-fabricmanager --no-pager; nvidia-smi -q | grep -A 4 Fabric"
IMEX = (
    "give the node an IMEX channel (/dev/nvidia-caps-imex-channels) and start nvidia-imex on all nodes of the NVLink "
    "domain; NCCL_MNNVL_ENABLE=0 does without"
)
CHANNELS = "ls -l /dev/nvidia-caps-imex-channels; systemctl status nvidia-imex --no-pager; nvidia-imex-ctl -N"
PROGRAM = (
    "look for the fault in the program first: CUDA_LAUNCH_BLOCKING=1 and compute-sanitizer show where; suspect the GPU "
    "only when it is always the same one"
)
NEWER = "install a driver for the CUDA of this PyTorch or NCCL, or take their builds for the CUDA that nvidia-smi shows"
COMPUTE = "nvidia-smi --query-gpu=index,compute_mode --format=csv"


def xid(numbers: str) -> str:
    """The line of the kernel log with one of these numbers, and what NCCL's diagnostics make of it since 2.32."""
    return (
        rf"NVRM: Xid \([^)]*\): (?:{numbers})\b"
        rf"|Xid (?:{numbers}) detected(?: .{{0,200}}? on host (?P<host>[\w.-]*\w))?"
    )


TEXTS = (
    # The driver is missing, too old, or of two releases.
    Text(
        r"Driver/library version mismatch|API mismatch: the client has the version",
        causes.GPU,
        SELF,
        "the libraries of the driver were updated and the old module is still loaded: reboot",
        known=REPORTED,
        fix="reboot this node: its driver was updated, and the module of the old one is loaded",
        look="cat /proc/driver/nvidia/version; modinfo -F version nvidia",
    ),
    Text(
        r"Error 80[34]\b|unsupported display driver / cuda driver combination|forward compatibility was attempted"
        r"|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH|CUDA_ERROR_COMPAT_NOT_SUPPORTED",
        causes.GPU,
        SELF,
        "libcuda and the loaded module are of different releases",
        known=REPORTED,
    ),
    Text(
        r"CUDA driver version is insufficient for CUDA runtime version"
        r"|CUDA Driver version found is \d+\. Minimum requirement is"
        r"|CUDA driver is older than the minimum version"
        r"|installed CUDA driver < R\d+"
        r"|Insufficient driver: \d+ < \d+"
        r"|NVIDIA driver on your system is too old"
        r"|API call is not supported in the installed CUDA driver"
        r"|PTX was compiled with an unsupported toolchain"
        r"|One-sided RMA requires CUDA driver",
        causes.GPU,
        SELF,
        "no NVIDIA driver, or one that is too old for the CUDA of this PyTorch or NCCL",
        fix=NEWER,
        command=fixes.site("nvidia_driver"),
        look="nvidia-smi",
    ),
    Text(
        r"CUDA driver is a stub library|cudaErrorStubLibrary",
        causes.GPU,
        SELF,
        "the program loaded the stub of libcuda that only serves to link",
        known=READ,
        fix="take the stubs folder of the CUDA toolkit out of LD_LIBRARY_PATH",
        look="env | grep LD_LIBRARY_PATH; ldconfig -p | grep libcuda.so",
    ),
    Text(
        r"NVIDIA-SMI has failed|Driver Not Loaded|Failed to open libnvidia-ml\.so|NVML Shared Library Not Found"
        r"|libnvidia-ml\.so\.1: cannot open",
        causes.GPU,
        SELF,
        "the NVIDIA driver or its libraries are not there: not loaded, not installed, or not given to this container",
        known=REPORTED,
    ),
    Text(
        r"RmInitAdapter failed|not supported by the NVIDIA \S+ driver release|No devices were found"
        r"|NVIDIA probe routine failed",
        causes.GPU,
        SELF,
        "the loaded driver does not start the GPU: too old for it, the closed module where the open one is needed, or "
        "a broken card",
        known=REPORTED,
        fix="read the kernel log: it names the card, and says whether it wants another driver or the open module",
        look="dmesg -T | grep -i nvrm; modinfo -F license nvidia",
    ),
    Text(
        r"could not insert 'nvidia\S*': (?:Key was rejected|Required key|Operation not permitted)",
        causes.GPU,
        SELF,
        "Secure Boot refuses the NVIDIA module: it is not signed with a key that this node trusts",
        known=REPORTED,
        fix="enrol the key that signs the module (mokutil --import), or switch Secure Boot off",
        look="mokutil --sb-state; modinfo -F signer nvidia",
    ),
    # CUDA does not start in this process although the driver is loaded.
    Text(
        r"CUDA driver initialization failed|CUDA_ERROR_NOT_INITIALIZED"
        r"|cuInit\S* .{0,60}\b(?:returned|failed|failure|error|code)\b\D{0,30}\b3\b",
        causes.GPU,
        SELF,
        "cuInit fails although nvidia-smi works: HMM of nvidia_uvm on this kernel (EL 9 and 10), or nvidia_uvm is not "
        "loaded",
        known=REPORTED,
        fix="set the option uvm_disable_hmm=1 of nvidia_uvm and load the module again, with no program on the GPUs",
        command="echo options nvidia_uvm uvm_disable_hmm=1 > /etc/modprobe.d/nvidia-uvm.conf; modprobe -r nvidia_uvm; "
        "modprobe nvidia_uvm",
    ),
    Text(
        rf"{CUDA}initialization error",
        causes.GPU,
        SELF,
        "CUDA does not start in this process: it was forked from one that used CUDA, or nvidia_uvm does not work",
        known=REPORTED,
        fix="start the workers of the program with spawn in place of fork; where all programs say so, load nvidia_uvm "
        "again",
        look="lsmod | grep nvidia_uvm; cat /sys/module/nvidia_uvm/parameters/uvm_disable_hmm",
    ),
    Text(
        r"no CUDA-capable device is detected|CUDA_ERROR_NO_DEVICE|No CUDA GPUs are available",
        causes.GPU,
        SELF,
        "this process sees no GPU: CUDA_VISIBLE_DEVICES is empty or wrong, a cgroup or container hides them, or the "
        "driver has none",
        known=REPORTED,
        fix="compare nvidia-smi -L with CUDA_VISIBLE_DEVICES in the job, and give its container or cgroup the GPUs",
        look="nvidia-smi -L; env | grep CUDA_VISIBLE_DEVICES; ls -l /dev/nvidia*",
    ),
    Text(
        r"Failed to initialize NVML: (?:Unknown Error|Insufficient Permissions|No permission)"
        r"|nvmlInit\w*\(\) failed: (?:Unknown Error|Insufficient Permissions)",
        causes.GPU,
        SELF,
        "this process may not open the GPUs: a reload of systemd took them from its container, or no right to them",
        known=REPORTED,
        fix="start the container again, with the device nodes given to it by name (--device /dev/nvidia0 and so on)",
        look="ls -l /dev/nvidia*",
    ),
    Text(
        rf"{CUDA}unknown error|CUDA unknown error|CUDA_ERROR_UNKNOWN",
        causes.GPU,
        SELF,
        "the driver gives up without a reason: nvidia_uvm after a suspend or an update, or a GPU that is gone",
        known=REPORTED,
        fix="look for Xid lines in the kernel log; without one load nvidia_uvm again, or reboot",
        command="modprobe -r nvidia_uvm && modprobe nvidia_uvm",
        look=XIDS,
    ),
    # Settings of the GPU.
    Text(
        r"CUDA-capable device\(s\) is/are busy or unavailable|all CUDA-capable devices are busy or unavailable"
        r"|exclusive-thread device already in use|CUDA_ERROR_DEVICE_UNAVAILABLE",
        causes.GPU,
        SELF,
        "the GPU admits one process only (compute mode EXCLUSIVE_PROCESS), and another has it",
        known=REPORTED,
        fix="set the compute mode to DEFAULT, and end a program that was left on the GPU",
        command="nvidia-smi --compute-mode=DEFAULT",
        look=COMPUTE,
    ),
    Text(
        r"MPS client failed to connect|MPS server is not ready|between the MPS server and the MPS client failed"
        r"|resources required to create MPS client|required to support device connections have been exhausted"
        r"|CUDA_ERROR_MPS_\w+",
        causes.GPU,
        SELF,
        "the MPS server of this node does not serve this process",
        known=READ,
        fix="start nvidia-cuda-mps-control again as the job's user, or unset CUDA_MPS_PIPE_DIRECTORY",
        look="ps -C nvidia-cuda-mps-control,nvidia-cuda-mps-server -o pid,user,args; env | grep CUDA_MPS",
    ),
    Text(
        r"doesn't have valid Grid license",
        causes.GPU,
        SELF,
        "the virtual GPU has no license",
        known=READ,
        fix="give the virtual machine its license of NVIDIA vGPU",
        look="nvidia-smi -q | grep -i license",
    ),
    Text(
        rf"{CUDA}operation not permitted(?! when| on)",
        causes.GPU,
        SELF,
        "the driver refuses: with NVLink over several nodes the IMEX channel is missing",
        known=REPORTED,
        fix=IMEX,
        look=CHANNELS,
    ),
    Text(
        rf"{CUDA}operation not supported",
        causes.GPU,
        SELF,
        "this GPU, or its virtual form, does not offer what was asked for: memory pools, cuMem or multicast",
        known=REPORTED,
        fix="try NCCL_CUMEM_ENABLE=0 and NCCL_NVLS_ENABLE=0; a vGPU needs unified memory switched on by its host",
    ),
    Text(
        r"OS call failed or operation not supported on this OS",
        causes.GPU,
        SELF,
        "the kernel refused the driver a call: memory that can't be pinned, or a container without the right",
        known=REPORTED,
        fix="read what the kernel log says at that time, and compare with NCCL_CUMEM_HOST_ENABLE=0",
        look="dmesg -T | tail -n 40; ulimit -l",
    ),
    # NVSwitch and NVLink.
    Text(
        rf"{CUDA}system not yet initialized|\bError 802\b|CUDA_ERROR_SYSTEM_NOT_READY",
        causes.GPU,
        SELF,
        "the Fabric Manager does not run, or is of another release than the driver",
        known=REPORTED,
        fix=FABRIC_MANAGER,
        look=FABRIC,
    ),
    Text(
        r"fabric manager NVIDIA GPU driver interface version|Failed to start NVIDIA fabric manager"
        r"|Failed to start nvidia-fabricmanager|nvidia-fabricmanager\.service: (?:Failed|Control process exited)"
        r"|fabric manager config file item: \S+ has an invalid value"
        r"|GPU fabric is not ready",
        causes.GPU,
        SELF,
        "the Fabric Manager does not start: it is of another release than the driver, or its settings are wrong",
        known=REPORTED,
        fix=FABRIC_MANAGER,
        look="journalctl -u nvidia-fabricmanager -b --no-pager | tail -n 20; cat /proc/driver/nvidia/version",
    ),
    Text(
        rf"{CUDA}(?:the )?operation cannot be performed in the present state",
        causes.GPU,
        SELF,
        "NVLink multicast is not ready: the Fabric Manager or an NVSwitch has failed",
        known=REPORTED,
        fix=f"{FABRIC_MANAGER}; NCCL_NVLS_ENABLE=0 does without",
        look=FABRIC,
    ),
    Text(
        r"uncorrectable NVLink error|Invalid access of peer GPU memory over nvlink",
        causes.GPU,
        SELF,
        "an NVLink of this node is broken, or the GPU at its other end",
        known=READ,
        fix=DRAIN,
        look=f"nvidia-smi nvlink --status; nvidia-smi nvlink --errorcounters; {XIDS}",
    ),
    Text(
        xid(r"74|14[4-9]|150|155")
        + r"|SXid \([^)]*\): \d+, Fatal|NVLink fabric health reports DEGRADED|NVLink: inactive link",
        causes.GPU,
        SELF,
        "the driver reports a broken NVLink or NVSwitch",
        known=REPORTED,
        fix=DRAIN,
        look=f"nvidia-smi nvlink --status; {XIDS}",
    ),
    Text(
        r"peer access is not supported between these two devices|mapping of buffer object failed",
        causes.GPU,
        SELF,
        "two GPUs of this node can't reach each other's memory",
        known=READ,
        fix="compare with NCCL_P2P_DISABLE=1; then look at PCIe ACS and the IOMMU, or at NVLink",
        look="nvidia-smi topo -p2p r; nvidia-smi topo -m",
    ),
    # The card.
    Text(
        r"uncorrectable ECC error|ECC_UNCORRECTABLE|ECC: uncorrected volatile errors",
        causes.GPU,
        SELF,
        "the memory of a GPU is damaged (ECC)",
        known=REPORTED,
        fix=DRAIN,
        look="nvidia-smi -q -d ECC,ROW_REMAPPER",
    ),
    Text(
        xid(r"48|63|64|92|94|95|140|160|161"),
        causes.GPU,
        SELF,
        "the driver reports errors of a GPU's memory",
        known=REPORTED,
        fix=DRAIN,
        look="nvidia-smi -q -d ECC,ROW_REMAPPER",
    ),
    Text(
        r"GPU is lost|fallen off the bus",
        causes.GPU,
        SELF,
        "a GPU does not answer on PCIe any more",
        known=REPORTED,
        fix="take this node out of the jobs, power it off and on, and have the GPU, its power and its slot looked at",
        look=XIDS,
    ),
    Text(
        xid(r"61|62|79|109|110|119|120|143|154"),
        causes.GPU,
        SELF,
        "a GPU or its firmware (GSP) does not answer any more",
        known=REPORTED,
        fix=DRAIN,
        look=XIDS,
    ),
    # The program, its build, and its ranks.
    Text(
        r"no kernel image is available for execution|device kernel image is invalid|invalid device function"
        r"|CUDA_ERROR_NO_BINARY_FOR_GPU|is not compatible with the current PyTorch installation"
        r"|PyTorch no longer supports this GPU",
        causes.PYTORCH,
        SELF,
        "this build of PyTorch, or of an extension, has no code for this GPU",
        known=REPORTED,
        fix="install a build for the compute capability of this GPU",
        look="python3 -c 'import torch; print(torch.cuda.get_device_capability(), torch.cuda.get_arch_list())'",
    ),
    Text(
        r"invalid device ordinal|CUDA_ERROR_INVALID_DEVICE|Invalid device \d+ \(totalnDev=|Invalid device id",
        causes.DISAGREE,
        SELF,
        "the rank asks for a GPU that it does not see: more ranks than GPUs, or CUDA_VISIBLE_DEVICES hides them",
        known=REPORTED,
        fix="start as many ranks on a node as nvidia-smi -L lists GPUs, and let each take the one of its LOCAL_RANK",
        look="nvidia-smi -L; env | grep CUDA_VISIBLE_DEVICES",
    ),
    Text(
        rf"{CUDA}out of memory|CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY",
        causes.RESOURCES,
        SELF,
        "the GPU's memory is full: by another program on it, or by this job itself",
        known=REPORTED,
        fix="end what else uses the GPU; when nothing does, take smaller batches",
        look="nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv",
    ),
    Text(
        r"an illegal memory access was encountered|CUDA_ERROR_ILLEGAL_ADDRESS|misaligned address"
        r"|device-side assert triggered|unspecified launch failure|an illegal instruction was encountered"
        r"|invalid program counter|hardware stack error|operation not supported on global/shared address space"
        r"|the launch timed out and was terminated|too many resources requested for launch"
        r"|invalid resource handle|operation not permitted when stream is capturing",
        causes.GPU,
        SELF,
        "a kernel of the program failed on the GPU, which is most often the program's own fault and not the driver's",
        known=REPORTED,
        fix=PROGRAM,
        look=XIDS,
    ),
    Text(
        xid("13|31|69"),
        causes.GPU,
        SELF,
        "a program read or wrote where it may not on the GPU",
        known=REPORTED,
        fix=PROGRAM,
        look=XIDS,
    ),
    Text(
        rf"{CUDA}invalid argument|CUDA_ERROR_INVALID_VALUE",
        causes.GPU,
        SELF,
        "the driver does not know a call: it is too old for the CUDA of this NCCL or PyTorch, NVLink SHARP is not "
        "ready, or the program passed a wrong value",
        known=REPORTED,
        fix="compare the CUDA that nvidia-smi shows with the one of NCCL and install a newer driver where it is older; "
        "else try NCCL_NVLS_ENABLE=0, then NCCL_CUMEM_ENABLE=0",
        look="nvidia-smi; python3 -c 'import torch; print(torch.version.cuda, torch.cuda.nccl.version())'",
    ),
    # Consequences, and what none of the lines above knows.
    Text(
        xid("43|45"),
        causes.GPU,
        SELF,
        "the driver ended a program's work on the GPU, after another error or because the program ended",
        known=REPORTED,
        weak=True,
        fix="look at the Xid before this one, and at the program",
        look=XIDS,
    ),
    Text(
        r"CUDA error: driver shutting down|Cuda failure (?:\d+ )?'driver shutting down",
        causes.ENDING,
        SELF,
        "the program still used CUDA while it ended",
        known=READ,
        weak=True,
    ),
    Text(
        r"Retrieve cu\w+ (?:version \d+ )?failed with \d+|some PFN functions not found in the library",
        causes.GPU,
        SELF,
        "the driver lacks functions that this NCCL looks for: it is older than its CUDA",
        known=READ,
        weak=True,
        fix=NEWER,
        look="nvidia-smi",
    ),
    Text(
        r"NVRM: Xid \(|SXid \(|Xid \d+ detected",
        causes.GPU,
        SELF,
        "the driver reports an error of a GPU or an NVSwitch",
        known=REPORTED,
        weak=True,
        fix="look the number up in NVIDIA's catalogue of Xid errors",
        look=XIDS,
    ),
    Text(
        r"CUDA error: |Cuda failure|CUDA_ERROR_|nvml\w+\([^)]*\) failed: ",
        causes.GPU,
        SELF,
        "CUDA failed",
        known=REPORTED,
        weak=True,
        fix="look for Xid lines in the kernel log of that time; without one it is the program or its CUDA, not the GPU",
        look=XIDS,
    ),
)
