import numpy as np, poselib, cv2
from types import SimpleNamespace
from heimdall.capture.lens import Pose
def start(ref, looks, f):
    now=looks[-1]; ok=np.isfinite(now[:,0]); n0,n1=ref[ok],now[ok]
    cam={'model':'SIMPLE_PINHOLE','width':2,'height':2,'params':[1.,0.,0.]}
    pose,info=poselib.estimate_relative_pose(n0,n1,cam,cam,{'max_epipolar_error':1.5/f,'max_iterations':500},{})
    inl=np.array(info['inliers'],bool); R,t=np.array(pose.R),np.array(pose.t); t/=np.linalg.norm(t)+1e-12
    h=cv2.triangulatePoints(np.eye(3,4),np.c_[R,t],n0.T,n1.T); X=(h[:3]/np.where(abs(h[3])<1e-9,1e-9,h[3])).T
    z1=(X@R.T+t)[:,2]; a,b=X,X+R.T@t; ang=np.degrees(np.arccos(np.clip((a*b).sum(1)/(np.linalg.norm(a,axis=1)*np.linalg.norm(b,axis=1)+1e-12),-1,1)))
    good=inl&(X[:,2]>0)&(z1>0)&(ang>1.0)
    if good.sum()<50 or good.sum()<.6*inl.sum() or inl.sum()<.6*len(inl) or np.median(ang[inl])<1.8: return 'parallax'
    k=1/np.median(X[good,2]); P=np.full((len(ref),3),np.nan); idx=np.flatnonzero(ok)[good]; P[idx]=X[good]*k
    agree=np.zeros(len(ref),bool); agree[idx]=True
    return SimpleNamespace(poses=[Pose(R,t*k)],points=P,agree=agree,parallax=0)
