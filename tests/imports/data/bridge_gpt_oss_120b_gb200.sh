# Source: NVIDIA-NeMo/Megatron-Bridge at 067f987df,
# examples/model_verification_cards/gpt-oss-120b/card.yaml.
./scripts/training/train.sh --nodes 16 --gpus-per-node 4 \
--recipe gpt_oss_120b_pretrain_64gpu_gb200_bf16_config \
--mode pretrain --max_steps 50 logger.log_throughput=true
